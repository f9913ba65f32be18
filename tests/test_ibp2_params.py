"""The parameter block of row format version 2: read, written, and refused for every rule of the format."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ibp2_broken_rules import BROKEN_RULES, DENSE, SPARSE, BrokenRule
from ibp2_cases import GOLDEN, GOLDEN_NAMES, golden_params, random_params

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.params import Code, Params
from gnn_ibp.ibp2.positions import Position


@pytest.mark.parametrize("golden", GOLDEN, ids=GOLDEN_NAMES)
def test_golden_block_is_read_and_written(golden: dict[str, Any]) -> None:
    params = golden_params(golden)
    assert [params.kind, params.chunk_bits, params.sign_bits] == [golden[key] for key in ("kind", "W", "sf")]
    assert [params.head_bits, params.zero_bits, params.levels] == [
        golden[key] for key in ("E", "z", "levels")
    ]
    codes = [[code.k1, code.g, code.symbols.hex()] for code in params.codes]
    assert codes == [[k1, g, symbols] for k1, g, symbols in golden["classes"]]
    word = f"<u{params.chunk_bytes}"
    assert params.leaves == tuple(np.frombuffer(bytes.fromhex(golden["leaf"]), word).tolist())
    assert params.zero == int.from_bytes(bytes.fromhex(golden["zero"]), "little")
    bases = np.frombuffer(bytes.fromhex(golden["base"]), word).tolist()
    assert [position.base for position in params.positions] == bases
    cls_sgn = [position.cls | position.sgn << 7 for position in params.positions]
    assert bytes(cls_sgn).hex() == golden["cls_sgn"]
    assert params.to_bytes().hex() == golden["block"]


@pytest.mark.parametrize("seed", range(100))
def test_legal_parameters_come_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = random_params(rng, "DS"[seed % 2], num_chunks=seed // 2)
    block = params.to_bytes()
    positions = params.num_chunks if params.kind == "D" else 1
    assert len(block) == 96 + 33 * params.chunk_bytes + positions * (1 + params.chunk_bytes)
    assert Params.from_bytes(block, params.num_chunks) == params


@pytest.mark.parametrize("broken", BROKEN_RULES, ids=[broken.name for broken in BROKEN_RULES])
def test_broken_rule_is_refused_by_name(broken: BrokenRule) -> None:
    with pytest.raises(FormatError, match=broken.why):
        Params.from_bytes(broken.block(), broken.golden["V"])


@pytest.mark.parametrize("golden", [DENSE, SPARSE], ids=["D", "S"])
@pytest.mark.parametrize("cut", [lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:95], lambda b: b""])
def test_block_of_another_length_is_refused(golden: dict[str, Any], cut: Callable[[bytes], bytes]) -> None:
    with pytest.raises(FormatError, match="bytes, want"):
        Params.from_bytes(cut(bytes.fromhex(golden["block"])), golden["V"])


def test_block_of_kind_d_is_for_one_number_of_chunks() -> None:
    with pytest.raises(FormatError, match="268 bytes, want 263"):
        Params.from_bytes(bytes.fromhex(DENSE["block"]), DENSE["V"] - 1)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"num_chunks": -1}, "V is -1"),
        ({"zero": 1 << 32, "kind": "S", "levels": 1}, "zero is 4294967296"),
        ({"leaves": (0,) * 31}, "31 leaves, want 32"),
        ({"positions": (Position(0, 0, 0),) * 7}, "7 positions, want 8"),
        ({"codes": (Code(0, 0, b"\0"),) * 5}, "number of classes is 5, want 1 to 4"),
    ],
)
def test_rule_that_no_block_can_break_holds_for_made_parameters(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(FormatError, match=rule):
        replace(golden_params(DENSE), **change)


def test_code_has_as_many_symbols_as_its_lists() -> None:
    with pytest.raises(FormatError, match="19 symbols, want 20"):
        Code(3, 2, bytes(19))
