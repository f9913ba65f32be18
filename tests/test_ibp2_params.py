"""The parameter block of row format version 2: read, written, and refused for every rule of the format."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ibp2_cases import GOLDEN, GOLDEN_NAMES, golden_params, random_params

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.params import Code, Params, Position

DENSE, SPARSE = GOLDEN[0], GOLDEN[GOLDEN_NAMES.index("2s S f32 levels 3")]
WHOLE = GOLDEN[GOLDEN_NAMES.index("2s int32 whole values")]
LEAF_AT, ZERO_AT, CLS_AT = 96, 96 + 128, 96 + 132
"""In blocks of 32-bit chunks."""

BASE_AT = CLS_AT + DENSE["V"]


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


@pytest.mark.parametrize(
    ("golden", "at", "value", "rule"),
    [
        pytest.param(DENSE, 0, ord("X"), "kind is 'X', want 'D' or 'S'", id="kind"),
        pytest.param(DENSE, 1, 24, "W is 24", id="W"),
        pytest.param(DENSE, 2, 2, "sf is 2", id="sf"),
        pytest.param(DENSE, 3, 0, "E is 0, want 1 to 31", id="E 0"),
        pytest.param(DENSE, 3, 32, "E is 32, want 1 to 31", id="E and sf"),
        pytest.param(DENSE, 4, 24, "z is 24, want 0 to 23", id="z"),
        pytest.param(DENSE, 5, 1, "levels is 1, want 0", id="levels of kind D"),
        pytest.param(SPARSE, 5, 0, "levels is 0, want 1 to 3", id="no levels"),
        pytest.param(SPARSE, 5, 4, "levels is 4, want 1 to 3", id="levels"),
        pytest.param(DENSE, 6, 0, "0 classes, want 1 to 4", id="no classes"),
        pytest.param(DENSE, 6, 5, "5 classes, want 1 to 4", id="classes"),
        pytest.param(SPARSE, 6, 2, "2 classes, want 1 to 1", id="classes of kind S"),
        pytest.param(DENSE, 7, 1, "byte 7 is 0x01, want 0", id="byte 7"),
        pytest.param(DENSE, 8, 4, "k1 is 4, want 0 to 3", id="k1"),
        pytest.param(DENSE, 9, 3, "g is 3, want 0 to 2", id="g"),
        pytest.param(DENSE, 8, 0, "g is 1, want 0 where k1 is 0", id="g without k1"),
        pytest.param(DENSE, 10, 0x20, "symbol 0x20 has a bit", id="symbol, bit 5"),
        pytest.param(DENSE, 10, 0x80, "symbol 0x80 has a bit", id="symbol, bit 7"),
        pytest.param(WHOLE, 10, 0x40, "t = 1, want 0 where sf is 0", id="t without sf"),
        pytest.param(DENSE, 8 + 2 + 11, 1, "an unused symbol is not 0", id="symbol behind the lists"),
        pytest.param(DENSE, 8 + 2 * 22, 1, "an unused class is not 0", id="unused class"),
        pytest.param(DENSE, 95, 1, "an unused class is not 0", id="last byte of the classes"),
        pytest.param(DENSE, LEAF_AT + 1, 1, "leaf 0 is 0x100, want 8 bits", id="leaf"),
        pytest.param(DENSE, LEAF_AT + 4 * 31 + 1, 1, "leaf 31 is 0x100, want 8 bits", id="unused leaf"),
        pytest.param(DENSE, ZERO_AT, 1, "zero is 0x1, want 0 for kind D", id="zero of kind D"),
        pytest.param(DENSE, CLS_AT, 2, "position 0 has class 2 of 2", id="class"),
        pytest.param(DENSE, CLS_AT + 7, 0xC1, "position 7 has class 65 of 2", id="bit 6 beside the class"),
        pytest.param(WHOLE, CLS_AT, 0x80, "position 0 has sgn 1", id="sgn without sf"),
        pytest.param(DENSE, BASE_AT + 4 * 7 + 1, 1, "position 7 has base 0x17f, want 8 bits", id="base"),
    ],
)
def test_broken_rule_is_refused_by_name(golden: dict[str, Any], at: int, value: int, rule: str) -> None:
    block = bytearray.fromhex(golden["block"])
    assert block[at] != value
    block[at] = value
    with pytest.raises(FormatError, match=rule):
        Params.from_bytes(bytes(block), golden["V"])


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
        ({"zero": 1 << 32, "kind": "S", "levels": 1}, "zero is 0x100000000"),
        ({"leaves": (0,) * 31}, "31 leaves, want 32"),
        ({"positions": (Position(0, 0, 0),) * 7}, "7 positions, want 8"),
        ({"codes": (Code(0, 0, b"\0"),) * 5}, "5 classes, want 1 to 4"),
    ],
)
def test_rule_that_no_block_can_break_holds_for_made_parameters(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(FormatError, match=rule):
        replace(golden_params(DENSE), **change)


def test_code_has_as_many_symbols_as_its_lists() -> None:
    with pytest.raises(FormatError, match="19 symbols, want 20"):
        Code(3, 2, bytes(19))
