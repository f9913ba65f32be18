"""Every rule of the parameter block of row format version 2, broken once."""

from typing import Any, NamedTuple

from ibp2_cases import GOLDEN, GOLDEN_NAMES

DENSE, SPARSE = GOLDEN[0], GOLDEN[GOLDEN_NAMES.index("2s S f32 levels 3")]
WHOLE = GOLDEN[GOLDEN_NAMES.index("2s int32 whole values")]
LEAF_AT, ZERO_AT, CLS_AT = 96, 96 + 128, 96 + 132
"""In blocks of 32-bit chunks."""

BASE_AT = CLS_AT + DENSE["V"]


class BrokenRule(NamedTuple):
    """name: of the rule. The byte `at` of the golden vector's block is `value`. why: told by the error."""

    name: str
    golden: dict[str, Any]
    at: int
    value: int
    why: str

    def block(self) -> bytes:
        """The parameter block that breaks the rule."""
        block = bytearray.fromhex(self.golden["block"])
        assert block[self.at] != self.value
        block[self.at] = self.value
        return bytes(block)


BROKEN_RULES = [
    BrokenRule("kind", DENSE, 0, ord("X"), "kind is 'X', want 'D' or 'S'"),
    BrokenRule("W", DENSE, 1, 24, "W is 24"),
    BrokenRule("sf", DENSE, 2, 2, "sf is 2"),
    BrokenRule("E 0", DENSE, 3, 0, "E is 0, want 1 to 31"),
    BrokenRule("E and sf", DENSE, 3, 32, "E is 32, want 1 to 31"),
    BrokenRule("z", DENSE, 4, 24, "z is 24, want 0 to 23"),
    BrokenRule("levels of kind D", DENSE, 5, 1, "levels is 1, want 0"),
    BrokenRule("no levels", SPARSE, 5, 0, "levels is 0, want 1 to 3"),
    BrokenRule("levels", SPARSE, 5, 4, "levels is 4, want 1 to 3"),
    BrokenRule("no classes", DENSE, 6, 0, "0 classes, want 1 to 4"),
    BrokenRule("classes", DENSE, 6, 5, "5 classes, want 1 to 4"),
    BrokenRule("classes of kind S", SPARSE, 6, 2, "2 classes, want 1 to 1"),
    BrokenRule("byte 7", DENSE, 7, 1, "byte 7 is 0x01, want 0"),
    BrokenRule("k1", DENSE, 8, 4, "k1 is 4, want 0 to 3"),
    BrokenRule("g", DENSE, 9, 3, "g is 3, want 0 to 2"),
    BrokenRule("g without k1", DENSE, 8, 0, "g is 1, want 0 where k1 is 0"),
    BrokenRule("symbol, bit 5", DENSE, 10, 0x20, "symbol 0x20 has a bit"),
    BrokenRule("symbol, bit 7", DENSE, 10, 0x80, "symbol 0x80 has a bit"),
    BrokenRule("t without sf", WHOLE, 10, 0x40, "t = 1, want 0 where sf is 0"),
    BrokenRule("symbol behind the lists", DENSE, 8 + 2 + 11, 1, "an unused symbol is not 0"),
    BrokenRule("unused class", DENSE, 8 + 2 * 22, 1, "an unused class is not 0"),
    BrokenRule("last byte of the classes", DENSE, 95, 1, "an unused class is not 0"),
    BrokenRule("leaf", DENSE, LEAF_AT + 1, 1, "leaf 0 is 0x100, want 8 bits"),
    BrokenRule("unused leaf", DENSE, LEAF_AT + 4 * 31 + 1, 1, "leaf 31 is 0x100, want 8 bits"),
    BrokenRule("zero of kind D", DENSE, ZERO_AT, 1, "zero is 0x1, want 0 for kind D"),
    BrokenRule("class", DENSE, CLS_AT, 2, "position 0 has class 2 of 2"),
    BrokenRule("bit 6 beside the class", DENSE, CLS_AT + 7, 0xC1, "position 7 has class 65 of 2"),
    BrokenRule("sgn without sf", WHOLE, CLS_AT, 0x80, "position 0 has sgn 1"),
    BrokenRule("base", DENSE, BASE_AT + 4 * 7 + 1, 1, "position 7 has base 0x17f, want 8 bits"),
]
