"""CRC-32 of pieces that are read side by side: that of the whole follows from theirs."""

_POLYNOMIAL = 0xEDB88320  # bit 31 is the coefficient of x^0, as in zlib
_ONE, _ONE_BYTE = 1 << 31, 1 << 23  # x^0, x^8


def joined_crc32(first: int, second: int, second_bytes: int) -> int:
    """`zlib.crc32` of two pieces, one behind the other, from those of each.

    `second_bytes` bytes behind the first piece multiply its remainder by x^(8 second_bytes); the second one's
    is added.
    """
    power, square = _ONE, _ONE_BYTE
    while second_bytes:
        if second_bytes & 1:
            power = _product(power, square)
        square = _product(square, square)
        second_bytes >>= 1
    return _product(first, power) ^ second


def _product(a: int, b: int) -> int:
    """Of two remainders of the division by CRC-32's polynomial, again a remainder."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = a << 1 & 0xFFFFFFFF
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
