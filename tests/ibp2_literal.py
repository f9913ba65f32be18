"""Row format version 2 once more, one bit after the other and in other words than the reference."""

from gnn_ibp.ibp2.params import Code, Params


def encode_literally(row: bytes, params: Params) -> bytes:
    """The row as stored, raw if that is no longer."""
    size = params.chunk_bytes
    chunks = [int.from_bytes(row[at : at + size], "little") for at in range(0, len(row), size)]
    coded = [j for j in range(len(chunks)) if params.kind == "D" or chunks[j] != params.zero]
    head, tail_bits = params.top_bits, params.tail_bits
    levels1, fields, high, low = "", "", "", b""
    for begin in range(0, len(coded), 256):
        block = ["", "", ""]
        for j in coded[begin : begin + 256]:
            position = params.positions[j if params.kind == "D" else 0]
            code = params.codes[position.cls]
            top = chunks[j] >> params.chunk_bits - head
            number = next((n for n, s in enumerate(code.symbols) if _top(s, position, params) == top), None)
            if (number is None and code.g == 0) or chunks[j] % (1 << params.zero_bits):
                return row
            first, *others = _fields(number, code, top, head)
            levels1 += first
            block = [joined + other for joined, other in zip(block, others, strict=True)]
            tail = _bits(chunks[j] >> params.zero_bits, tail_bits)
            high += tail[tail_bits // 8 * 8 :]
            low += _bytes(tail[: tail_bits // 8 * 8])
        fields += "".join(block)
    front = _bitmap(coded, params) + _bytes(levels1) + _bytes(fields)
    planes = _bytes(high) + low
    stored = front + planes
    while len(stored) % max(4, size):
        front += b"\0"
        stored = front + planes
    return stored if len(stored) < len(row) else row


def _top(symbol: int, position: tuple[int, int, int], params: Params) -> int:
    _, sgn, base = position
    e = (base + params.leaves[symbol % 32]) % 2**params.head_bits
    return (sgn ^ symbol // 64) * 2**params.head_bits + e


def _fields(number: int | None, code: Code, top: int, top_bits: int) -> list[str]:
    """f1, f2, f3 and RAW: as bits, those that are not there empty."""
    num_first, num_second = 2**code.k1 - code.g, 4 * code.g - 1
    if number is None:
        return [_bits(2**code.k1 - 1, code.k1), "11", "111", _bits(top, top_bits)]
    if number < num_first:
        return [_bits(number, code.k1), "", "", ""]
    number -= num_first
    if number < num_second:
        return [_bits(num_first + number // 4, code.k1), _bits(number % 4, 2), "", ""]
    return [_bits(2**code.k1 - 1, code.k1), "11", _bits(number - num_second, 3), ""]


def _bitmap(coded: list[int], params: Params) -> bytes:
    if params.kind == "D":
        return b""
    there, count, stored = set(coded), params.num_chunks, b""
    for level in range(params.levels):
        num_bytes = (count + 7) // 8
        whole = [sum(1 << bit for bit in range(8) if 8 * i + bit in there) for i in range(num_bytes)]
        is_last = level == params.levels - 1
        stored = bytes(byte for byte in whole if byte or is_last) + stored
        there, count = {i for i, byte in enumerate(whole) if byte}, num_bytes
    return stored


def _bits(value: int, width: int) -> str:
    """The lowest bit first."""
    return "".join(str(value >> i & 1) for i in range(width))


def _bytes(bits: str) -> bytes:
    return b"".join(bytes((int(bits[at : at + 8][::-1], 2),)) for at in range(0, len(bits), 8))
