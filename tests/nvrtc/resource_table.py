"""Writes what the kernels take into resources.json: `make gpu-resources`. Tests only read the table."""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nvrtc

RESOURCES = Path(__file__).resolve().parent / "resources.json"


def read_table() -> dict[str, Any]:
    """The committed table: `nvrtc`, its version; per module, kernel, architecture what it takes."""
    table: dict[str, Any] = json.loads(RESOURCES.read_text())
    return table


def table_of(compiled: Mapping[tuple[str, str], nvrtc.Compiled]) -> dict[str, Any]:
    """The table of kernel files compiled, by (module, architecture)."""
    table: dict[str, Any] = {"nvrtc": nvrtc.version()}
    for (module, architecture), result in sorted(compiled.items()):
        for kernel, taken in sorted(result.resources.items()):
            row = {"registers": taken.registers, "shared_bytes": taken.shared_bytes}
            table.setdefault(module, {}).setdefault(kernel, {})[architecture] = row
    return table


def main() -> None:
    cases = [(module, architecture) for module in nvrtc.modules() for architecture in nvrtc.ARCHITECTURES]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        compiled = dict(zip(cases, threads.map(lambda case: nvrtc.compile_module(*case), cases), strict=True))
    RESOURCES.write_text(json.dumps(table_of(compiled), indent=1) + "\n")
    print(f"{RESOURCES} is of {len(cases)} compilations by NVRTC {nvrtc.version()}")


if __name__ == "__main__":
    main()
