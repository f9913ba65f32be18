"""Every rule of the parameter block of row format version 2, broken once."""

from typing import Any, NamedTuple

from ibp2_cases import golden_named

DENSE, SPARSE = golden_named("example"), golden_named("2s S f32 levels 3")
WHOLE, WHOLE_SPARSE = golden_named("2s int32 whole values"), golden_named("2s S whole values")
"""All of 32-bit chunks."""

CLASSES_AT, LEAF_AT, ZERO_AT, CLS_AT = 8, 96, 96 + 128, 96 + 132
BASE_AT = CLS_AT + DENSE["V"]


class BrokenRule(NamedTuple):
    """name: of the rule. The byte `at` of the golden vector's block is `value`.

    why: told by the reference, and by the kernels, too, unless `kernels_why` says their own words.
    """

    name: str
    golden: dict[str, Any]
    at: int
    value: int
    why: str
    kernels_why: str = ""

    def block(self) -> bytes:
        """The parameter block that breaks the rule."""
        block = bytearray.fromhex(self.golden["block"])
        assert block[self.at] != self.value
        block[self.at] = self.value
        return bytes(block)


ODD_BIT = "a symbol has a bit other than 6 and 4 to 0"
NO_CLASS, SGN = "a position has a class that there is not", "a position has sgn 1, want 0 where sf is 0"
LONG_LEAF, LONG_BASE = "a leaf has more than E bits", "a base has more than E bits"

BROKEN_RULES = [
    BrokenRule("kind", DENSE, 0, ord("X"), "kind is 'X', want 'D' or 'S'", "kind is neither D nor S"),
    BrokenRule("W", DENSE, 1, 24, "W is 24"),
    BrokenRule("W 0", DENSE, 1, 0, "W is 0"),
    BrokenRule("sf", DENSE, 2, 2, "sf is 2, want 0"),
    BrokenRule("E 0", DENSE, 3, 0, "E is 0, want 1 to 31"),
    BrokenRule("E and sf", DENSE, 3, 32, "E is 32, want 1 to 31"),
    BrokenRule("E without sf", WHOLE, 3, 33, "E is 33, want 1 to 32"),
    BrokenRule("z", DENSE, 4, 24, "z is 24, want 0 to 23"),
    BrokenRule("levels of kind D", DENSE, 5, 1, "levels is 1, want 0"),
    BrokenRule("no levels", SPARSE, 5, 0, "levels is 0, want 1 to 3"),
    BrokenRule("levels", SPARSE, 5, 4, "levels is 4, want 1 to 3"),
    BrokenRule("no classes", DENSE, 6, 0, "number of classes is 0, want 1 to 4"),
    BrokenRule("classes", DENSE, 6, 5, "number of classes is 5, want 1 to 4"),
    BrokenRule("classes of kind S", SPARSE, 6, 2, "number of classes is 2, want 1 to 1"),
    BrokenRule("byte 7", DENSE, 7, 1, "byte 7 is 1, want 0"),
    BrokenRule("k1", DENSE, CLASSES_AT, 4, "k1 is 4, want 0 to 3"),
    BrokenRule("g", DENSE, CLASSES_AT + 1, 3, "g is 3, want 0 to 2"),
    BrokenRule("g without k1", DENSE, CLASSES_AT, 0, "g is 1, want 0"),
    BrokenRule("symbol, bit 5", DENSE, CLASSES_AT + 2, 0x20, ODD_BIT),
    BrokenRule("symbol, bit 7", DENSE, CLASSES_AT + 2, 0x80, ODD_BIT),
    BrokenRule("last symbol, bit 5", DENSE, CLASSES_AT + 2 + 10, 0x20, ODD_BIT),
    BrokenRule("t without sf", WHOLE, CLASSES_AT + 2, 0x40, "a symbol has t = 1, want 0 where sf is 0"),
    BrokenRule("symbol behind the lists", DENSE, CLASSES_AT + 2 + 11, 1, "an unused symbol is not 0"),
    BrokenRule("unused class", DENSE, CLASSES_AT + 2 * 22, 1, "an unused class is not 0"),
    BrokenRule("last byte of the classes", DENSE, LEAF_AT - 1, 1, "an unused class is not 0"),
    BrokenRule("leaf", DENSE, LEAF_AT + 1, 1, "leaf 0 is 0x100, want 8 bits", LONG_LEAF),
    BrokenRule("unused leaf", DENSE, LEAF_AT + 4 * 31 + 1, 1, "leaf 31 is 0x100, want 8 bits", LONG_LEAF),
    BrokenRule("zero of kind D", DENSE, ZERO_AT, 1, "zero is 1, want 0"),
    BrokenRule("last byte of zero", DENSE, CLS_AT - 1, 1, "zero is 16777216, want 0"),
    BrokenRule("class", DENSE, CLS_AT, 2, "position 0 has class 2 of 2", NO_CLASS),
    BrokenRule("class of kind S", SPARSE, CLS_AT, 1, "position 0 has class 1 of 1", NO_CLASS),
    BrokenRule("bit 6 beside the class", DENSE, CLS_AT + 7, 0xC1, "position 7 has class 65 of 2", NO_CLASS),
    BrokenRule("sgn without sf", WHOLE, CLS_AT, 0x80, "position 0 has sgn 1, want 0", SGN),
    BrokenRule("sgn of kind S without sf", WHOLE_SPARSE, CLS_AT, 0x80, "position 0 has sgn 1, want 0", SGN),
    BrokenRule("base", DENSE, BASE_AT + 4 * 7 + 1, 1, "position 7 has base 0x17f, want 8 bits", LONG_BASE),
    BrokenRule("base of kind S", SPARSE, CLS_AT + 1 + 3, 1, "position 0 has base 0x100", LONG_BASE),
]
