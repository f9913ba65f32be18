"""Faults planted in the gather-decode kernels of row format version 2, each of which its checks must find."""

from mutate import Mutant

_TABLE, _CODES, _CHUNKS, _ROW = (
    "cuda/ibp2_table.cuh",
    "cuda/ibp2_codes.cuh",
    "cuda/ibp2_chunks.cuh",
    "cuda/ibp2_row.cuh",
)
_DENSE, _LONG, _SPARSE, _BITMAP = (
    "cuda/ibp2_dense.cuh",
    "cuda/ibp2_long.cuh",
    "cuda/ibp2_sparse.cuh",
    "cuda/ibp2_bitmap.cuh",
)
_WHOLE, _BITS, _STAGE = "cuda/gather_whole.cuh", "cuda/bit_words.cuh", "cuda/row_stage.cuh"

MUTANTS = [
    # parameters
    Mutant("chunks beyond the row count", _TABLE, "(left < kChunks ? left : kChunks)", "kChunks"),
    Mutant("places of the wrong four chunks", _TABLE, "= eight.y;", "= eight.x;"),
    Mutant("places of the wrong coded chunks", _TABLE, "= numbers.places[1];", "= numbers.places[0];"),
    # codes
    Mutant("all chunks of class 0", _CODES, "(place >> 5 & 3) * 8", "(place >> 5 & 0) * 8"),
    Mutant("fields of level 1 cut", _CODES, "fields >> place % 32 & 7", "fields >> place % 32 & 3"),
    Mutant("fields of lower lanes forgotten", _CODES, "num + votes.below;", "num;"),
    Mutant("fields of earlier pieces forgotten", _CODES, "num += votes.all;", "num = votes.all;"),
    Mutant("lanes of other teams vote", "cuda/warp.cuh", "__popc(vote & team)", "__popc(vote)"),
    Mutant("later fields unchecked", _CODES, "num * width <= later.end - later.at;", "true;"),
    Mutant("later fields must leave room", _CODES, "width <= later.end", "width < later.end"),
    Mutant("later fields not told apart", _CODES, "fields >>= WIDTH;", ""),
    Mutant("later fields read again", _CODES, "later.at += num * width;", ""),
    Mutant("RAW taken by some lanes", _CODES, "if (__any_sync(kAllLanes, raws_ != 0))", "if (raws_ != 0)"),
    # chunks
    Mutant("sgn forgotten", _CHUNKS, "(code ^ sgn) & kFlips", "code & kFlips"),
    Mutant("a sign where there is none", _CHUNKS, ">> table.numbers.sign_bits;", ">> 1;"),
    Mutant("bits of the next high field", _CHUNKS, " & high_mask;", ";"),
    Mutant("bits of the next low field", _CHUNKS, "(low & low_mask)", "low"),
    Mutant("zero bits forgotten", _CHUNKS, " << numbers.zero_bits);", ");"),
    Mutant("RAW read again", _CHUNKS, "raw_at += numbers.top_bits;", ""),
    Mutant("bits of the next RAW", _CHUNKS, " >> (kBits - W);\n        raw_at", ";\n        raw_at"),
    Mutant("high fields of 16 chunks cut", _CHUNKS, "W == 16 ? bits64(words, tails.high)", "W == 1 ? 0"),
    # parts of a row
    Mutant("parts unchecked", _ROW, "if (fields + low_bits + high_bits > end)", "if (false)"),
    Mutant("parts must leave room", _ROW, "high_bits > end)", "high_bits >= end)"),
    Mutant("level 1 cut", _ROW, "(first_bits + 7) / 8", "first_bits / 8"),
    Mutant("high plane cut", _ROW, "numbers.high_bits + 7) / 8", "numbers.high_bits) / 8"),
    Mutant("any size of short rows", _DENSE, "row.size % Ibp2Table<W>::kSizeUnit == 0", "true"),
    Mutant("any size of long rows", _LONG, "if (size % Ibp2Table<W>::kSizeUnit) return false;", ""),
    Mutant("any size of sparse rows", _SPARSE, "size % Ibp2Table<W>::kSizeUnit ||", ""),
    Mutant("stores beyond a long row", _LONG, "min(row_bytes_ - before, kUnitBytes) : 0", "kUnitBytes : 0"),
    Mutant("tails far beyond a long row", _LONG, "min(chunk, table_.num_chunks)", "chunk + 64"),
    # bitmap
    Mutant("listed zeros accepted", _BITMAP, "well &= is_whole || ", "well &= true || "),
    Mutant("bits beyond the row accepted", _BITMAP, " && !(last >> last_bits);", ";"),
    Mutant("bits of a byte that is not stored", _BITMAP, "has_last = last >> (last_bits - 1) & 1;", ""),
    Mutant("bytes behind the bitmap counted", _BITMAP, "__popc(four & valid)", "__popc(four)"),
    Mutant("ones of lower lanes overwritten", _BITMAP, "num_found + votes.below;", "num_found;"),
    Mutant("bytes that are 0 not counted", _BITMAP, "8 * number +", "8 * i +"),
    Mutant("ones brought twice", _BITMAP, "levels_[0].num_taken += count;", ""),
    Mutant("numbers brought twice", _BITMAP, "level.num_taken += count;", ""),
    Mutant(
        "ones: no barrier before they are read",
        _BITMAP,
        "find_more<0>();\n    __syncwarp();",
        "find_more<0>();",
    ),
    Mutant(
        "numbers: no barrier before they are read",
        _BITMAP,
        "find_more<LEVEL>();\n    __syncwarp();",
        "find_more<LEVEL>();",
    ),
    # sparse rows
    Mutant("stores beyond a sparse row", _SPARSE, "min(row_bytes_ - at, kUnitBytes)", "kUnitBytes"),
    Mutant("more chunks put than coded", _SPARSE, "if (number + i < count)", "if (number + i <= count)"),
    # whole rows
    Mutant("rows longer than a slot staged", _WHOLE, "<= Codec::kStageBytes", "<= 2 * Codec::kStageBytes"),
    Mutant("whole: copies not waited for", _WHOLE, "cp_async_wait<1>();", "cp_async_wait<2>();"),
    Mutant(
        "whole: no barrier before a slot is read",
        _WHOLE,
        "cp_async_wait<1>();\n      __syncwarp();",
        "cp_async_wait<1>();",
    ),
    Mutant(
        "whole: no barrier before a slot is filled", _WHOLE, "__syncwarp();  // the slot has been read", ""
    ),
    Mutant("whole: wrong slot", _WHOLE, "(r + 1) % kSlots", "r % kSlots"),
    Mutant("stores beyond a raw row", _WHOLE, "min(shape_.row_bytes - at, kUnitBytes)", "kUnitBytes"),
    Mutant("words behind a row read", _BITS, "min(k, last)", "k"),
    Mutant("a sector of a row without bytes read", _STAGE, "bytes ? ", "true ? "),
]
"""Groups: parameters; codes; chunks; parts of a row; bitmap; sparse rows; whole rows."""
