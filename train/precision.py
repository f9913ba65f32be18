"""Precision: what matrix products round their operands to. Sums, and all else, are float32."""

from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import linear

Precision = Literal["float32", "bfloat16"]

INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}
"""Flags of x86-64's and aarch64's processors that multiply bfloat16."""

BLOCK_ROWS = 8192
"""Rows that are rounded and multiplied at a time, so that their copies stay small."""

OPERAND_BYTES = {"float32": 0, "bfloat16": 6}
"""What an operand's rounded number takes beside it, at most: as bfloat16, and as float32 again."""


@cache
def has_instructions(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor multiplies bfloat16; False where the system does not tell."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    flags = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features")))
    return not INSTRUCTIONS.isdisjoint(next(flags, []))


def operand(values: Tensor, precision: Precision) -> Tensor:
    """float32 `values` as products take them.

    A processor without instructions for bfloat16 multiplies the rounded numbers as float32: torch does it
    ten times slower as bfloat16. One with them, and a GPU, rounds results as well.
    """
    if precision == "float32":
        return values
    rounded = values.bfloat16()
    return rounded if values.device.type != "cpu" or has_instructions() else rounded.float()


def product(rows: Tensor, weight: Tensor, bias: Tensor | None, precision: Precision) -> Tensor:
    """rows @ weight.t() + bias, float32; it has a gradient."""
    if precision == "float32":
        return linear(rows, weight, bias)
    out = linear(operand(rows, precision), operand(weight, precision)).float()
    return out if bias is None else out + bias


def put_product(out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None, precision: Precision) -> None:
    """out = a @ b + bias, without a gradient; a has many rows."""
    if precision == "float32":
        if bias is None:
            torch.mm(a, b, out=out)
        else:
            torch.addmm(bias, a, b, out=out)
        return
    b = operand(b, precision)
    for rows in _blocks(len(a)):
        out[rows] = operand(a[rows], precision) @ b
    if bias is not None:
        out += bias


def inner_product(a: Tensor, b: Tensor, precision: Precision) -> Tensor:
    """a.t() @ b, float32, without a gradient; a and b have many rows."""
    if precision == "float32":
        return a.t() @ b
    out = torch.zeros(a.shape[1], b.shape[1])
    for rows in _blocks(len(a)):
        out += operand(a[rows], precision).t() @ operand(b[rows], precision)
    return out


def _blocks(num_rows: int) -> list[slice]:
    return [slice(first, first + BLOCK_ROWS) for first in range(0, num_rows, BLOCK_ROWS)]
