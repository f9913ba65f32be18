"""Faults planted in the gather-decode kernel, each of which its checks must find."""

from mutate import Mutant

_SOURCE, _TILE, _STAGE = "cuda/row_source.cuh", "cuda/row_tile.cuh", "cuda/row_stage.cuh"
_IBP, _SHORT, _LONG, _STORE = (
    "cuda/ibp_decode.cuh",
    "cuda/gather_short.cuh",
    "cuda/gather_long.cuh",
    "cuda/row_store.cuh",
)

MUTANTS = [
    # where rows lie
    Mutant(
        "32-bit offset in place",
        _SOURCE,
        "at = slot * shape.row_bytes;",
        "at = static_cast<uint32_t>(slot) * shape.row_bytes;",
    ),
    Mutant(
        "32-bit offset of the base",
        _SOURCE,
        "at = __ldg(source.bases + slot / kGroupRows);",
        "at = static_cast<uint32_t>(__ldg(source.bases + slot / kGroupRows));",
    ),
    Mutant("sizes before a row forgotten", _SOURCE, "if (count & 2) {", "if (count & 2 && count > 4) {"),
    Mutant("one size too many", _SOURCE, "if (v < count / 8) {", "if (v <= count / 8) {"),
    Mutant("unguarded slot", _SOURCE, "if (slot >= source.num_rows) return false;", ""),
    Mutant(
        "unguarded extent",
        _SOURCE,
        "if (room > rows_bytes || at > rows_bytes - room) return false;",
        "if (room > rows_bytes) return false;",
    ),
    Mutant("rows out of line accepted", _SOURCE, "if (at & (source.align - 1)) return false;", ""),
    # looking up, counting
    Mutant(
        "unguarded negative id",
        _TILE,
        "static_cast<uint64_t>(id) < request.num_rows",
        "id < static_cast<int64_t>(request.num_rows)",
    ),
    Mutant("unguarded target", _TILE, "static_cast<uint64_t>(target) < request.num_out", "true"),
    Mutant(
        "32-bit offset of the output",
        _TILE,
        "static_cast<uint64_t>(target) * shape.row_bytes",
        "static_cast<uint32_t>(target) * shape.row_bytes",
    ),
    Mutant("ids served twice", _TILE, "lane < request.tile_rows && ", ""),
    Mutant(
        "missing ids overwrite one another", _TILE, "__popc(missing & lanes_below)", "__popc(missing & 0)"
    ),
    Mutant("no barrier after looking up", _TILE, "__syncwarp();  // the places can be read", ""),
    Mutant("no barrier before the next tile", _TILE, "__syncwarp();  // they have been read", ""),
    Mutant("hits counted twice", _TILE, "if (lane == at + 1) mine_", "if (lane >= at + 1) mine_"),
    Mutant("the last bad id is told", _TILE, "atomicMin(first,", "atomicMax(first,"),
    # reading
    Mutant("last sector missing", _STAGE, "(skip + bytes + 31) / 32", "(skip + bytes) / 32"),
    Mutant("a sector too many", _STAGE, "(skip + bytes + 31) / 32", "(skip + bytes + 32 + 31) / 32"),
    Mutant(
        "unmasked lanes before the row",
        _STAGE,
        "lane + round * LANES - begin < end - begin",
        "lane + round * LANES < end",
    ),
    Mutant("unmasked lanes of long rows", _STAGE, "if (unit >= begin) cp_async", "cp_async"),
    Mutant(
        "short: copies not waited for",
        _SHORT,
        "cp_async_wait<2>();\n      __syncwarp();\n      decode",
        "cp_async_wait<3>();\n      __syncwarp();\n      decode",
    ),
    Mutant("short: head not waited for", _SHORT, "cp_async_wait<1>();", "cp_async_wait<2>();"),
    Mutant(
        "short: no barrier before a slot is read",
        _SHORT,
        "cp_async_wait<2>();\n      __syncwarp();\n      decode",
        "cp_async_wait<2>();\n      decode",
    ),
    Mutant(
        "short: no barrier before a slot is filled", _SHORT, "__syncwarp();  // the slot has been read", ""
    ),
    Mutant("short: wrong slot", _SHORT, "open(r + 2, last);", "open(r + 2, next);"),
    Mutant("long: copies not waited for", _LONG, "cp_async_wait<2>();", "cp_async_wait<3>();"),
    Mutant(
        "long: no barrier before the ring is read",
        _LONG,
        "cp_async_wait<2>();\n      __syncwarp();",
        "cp_async_wait<2>();",
    ),
    Mutant(
        "long: no barrier before the ring is filled",
        _LONG,
        "__syncwarp();  // what lies before `bit` has been read",
        "",
    ),
    Mutant("long: no barrier around the window", _LONG, "__syncwarp();  // the window has been read", ""),
    Mutant(
        "long: ring filled too far",
        _LONG,
        "/ kLineBytes * kLineUnits + kRingUnits",
        "/ kLineBytes * kLineUnits + kRingUnits + 64",
    ),
    Mutant(
        "long: window too short",
        _LONG,
        "unit < unit_end(skip, head_bytes); unit += 32",
        "unit < unit_end(0, head_bytes); unit += 32",
    ),
    # decoding
    Mutant(
        "width off by one",
        _IBP,
        "start + 32 * i - before, k = bit >> 5;\n    const uint32_t stream = __funnelshift_l(word(k + 1)",
        "start + 31 * i - before, k = bit >> 5;\n    const uint32_t stream = __funnelshift_l(word(k + 1)",
    ),
    Mutant(
        "second word of a chunk is the first",
        _IBP,
        "__funnelshift_l(word(k + 1), word(k), bit)",
        "__funnelshift_l(word(k), word(k), bit)",
    ),
    Mutant(
        "wrong carry between halves of a lane", _IBP, " + (first >> 24)) * 0x01010101u", ") * 0x01010101u"
    ),
    Mutant(
        "halves of a word not swapped", _IBP, "__byte_perm(word, 0, 0x1032)", "__byte_perm(word, 0, 0x3210)"
    ),
    Mutant("words of a pair not swapped", _IBP, "word((k + 2) ^ 1)", "word(k + 2)"),
    Mutant("scan too short", _IBP, "step < LANES; step *= 2", "step < LANES / 2; step *= 2"),
    Mutant(
        "lanes of other teams counted",
        "cuda/warp.cuh",
        "((1u << lane) - 1) << first",
        "(1u << (first + lane)) - 1",
    ),
    Mutant("last move forgotten", _IBP, "step-- > 0;) {", "step-- > 1;) {"),
    Mutant("bits beyond the row count", _IBP, " & part.valid;", " & ((1u << kChunks) - 1);"),
    Mutant("padding of the head unchecked", _IBP, "(last_head & beyond) | ", ""),
    Mutant("padding of the payload unchecked", _IBP, " | (last & unused)", ""),
    Mutant("announced size unchecked", _IBP, " && size == size_of(saved)", ""),
    # writing
    Mutant(
        "stores beyond a short row", _SHORT, "min(shape.row_bytes - before, kUnitBytes) : 0", "kUnitBytes : 0"
    ),
    Mutant("stores beyond a long row", _LONG, "min(bytes - before, kUnitBytes) : 0", "kUnitBytes : 0"),
    Mutant("last word of a row not stored", _STORE, "if (count > 8) words[2]", "if (count > 12) words[2]"),
]
"""Groups: where rows lie; looking up and counting; reading; decoding; writing."""
