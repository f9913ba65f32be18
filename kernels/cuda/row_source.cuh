// Where a wanted row lies: slot table, bitmask and index of encoded rows in a slab.
//
//   slab:  | 64 bytes | row 0 | row 1 | ...            | 64 bytes |
//                     ^ a multiple of 32                 a decoder may touch whole sectors, never more
//
//   in place:   row i begins at i * row_bytes; how much of it is stored, its own bits tell
//   condensed:  row i begins at bases[i / 32] + the aligned sizes of the rows before it in its group of 32
#pragma once

#include "cuda/row_stage.cuh"

namespace gnn_ibp {

constexpr unsigned kPadBytes = 64;
constexpr unsigned kGroupRows = 32;

struct RowSource {
  const uint8_t* slab;      // null: there is no such source
  const uint8_t* bitmask;   // bit i % 8 of byte i / 8: row i is encoded
  const uint64_t* bases;    // null: in place
  const uint16_t* sizes16;  // in units, 16-byte aligned; one of these two is set where the rows are condensed
  const uint32_t* sizes32;
  const int32_t* slot_of;  // null: id i is row i; negative: it is not here
  uint64_t slab_bytes;
  uint64_t num_rows;
  uint32_t align;  // rows begin at multiples of it; a power of two
};

// `b` where `second`, else `a`; field by field, which takes no memory.
__device__ __forceinline__ RowSource pick(bool second, const RowSource& a, const RowSource& b) {
  return {second ? b.slab : a.slab,
          second ? b.bitmask : a.bitmask,
          second ? b.bases : a.bases,
          second ? b.sizes16 : a.sizes16,
          second ? b.sizes32 : a.sizes32,
          second ? b.slot_of : a.slot_of,
          second ? b.slab_bytes : a.slab_bytes,
          second ? b.num_rows : a.num_rows,
          second ? b.align : a.align};
}

// What all rows of a launch have in common.
struct RowShape {
  uint32_t row_bytes;
  uint32_t head_bytes;  // what an encoded row begins with, and what tells its size
  uint32_t unit;        // stored sizes are multiples of it
};

enum PlaceFlags : uint32_t {
  kEncoded = 1,
  kInPlace = 2,   // encoded, and `size` is that of the head until the head has been read
  kFromHost = 4,  // out of the second source
};

// One row to decode. 32 bytes, so that a warp reads it in two loads.
struct alignas(16) Place {
  const uint8_t* line;  // the 128-byte line in which it begins
  uint64_t out_at;      // of the decoded row, in bytes from the first
  uint32_t skip;        // bytes of the line before the row
  uint32_t size;        // stored bytes
  uint32_t flags;
  uint16_t lane;     // which id of the tile it is
  uint16_t damaged;  // not 0 where decoding found it so
};

__device__ __forceinline__ int64_t find_slot(const RowSource& source, int64_t id) {
  if (!source.slab) return -1;
  return source.slot_of ? __ldg(source.slot_of + id) : id;
}

// Bytes of `count` rows, less than 32, whose sizes begin at `sizes`, a multiple of 16 bytes. All loads are
// of whole, aligned words below sizes[count], and in flight together.
__device__ __forceinline__ uint32_t bytes_of_rows(const uint16_t* sizes, unsigned count, uint32_t unit,
                                                  uint32_t align) {
  uint32_t words[16] = {};  // two sizes each: 3 x 8 by sixteen bytes, then 4, 2 and 1
  const uint4* whole = reinterpret_cast<const uint4*>(sizes);
#pragma unroll
  for (unsigned v = 0; v < 3; ++v) {
    if (v < count / 8) {
      const uint4 eight = __ldg(whole + v);
      words[4 * v] = eight.x, words[4 * v + 1] = eight.y, words[4 * v + 2] = eight.z;
      words[4 * v + 3] = eight.w;
    }
  }
  const uint16_t* rest = sizes + (count & ~7u);
  if (count & 4) {
    const uint2 four = __ldg(reinterpret_cast<const uint2*>(rest));
    words[12] = four.x, words[13] = four.y;
    rest += 4;
  }
  if (count & 2) {
    words[14] = __ldg(reinterpret_cast<const uint32_t*>(rest));
    rest += 2;
  }
  if (count & 1) words[15] = __ldg(rest);
  uint32_t bytes = 0;
#pragma unroll
  for (unsigned k = 0; k < 16; ++k) {
    bytes += ((words[k] & 0xFFFF) * unit + align - 1) & ~(align - 1);
    bytes += ((words[k] >> 16) * unit + align - 1) & ~(align - 1);
  }
  return bytes;
}

// Fills in where row `slot` lies, and how it is stored; false where that is damaged. Reads no row.
__device__ __forceinline__ bool locate(const RowSource& source, uint64_t slot, const RowShape& shape,
                                       Place& place) {
  if (slot >= source.num_rows) return false;
  const uint32_t encoded = __ldg(source.bitmask + (slot >> 3)) >> (slot & 7) & 1;
  uint64_t at, room = shape.row_bytes, size = room;
  place.flags |= encoded ? kEncoded : 0u;
  if (!source.bases) {
    at = slot * shape.row_bytes;
    if (encoded) size = shape.head_bytes, place.flags |= kInPlace;
  } else {
    const uint64_t first = slot & ~static_cast<uint64_t>(kGroupRows - 1);
    const unsigned count = static_cast<unsigned>(slot - first);
    at = __ldg(source.bases + slot / kGroupRows);
    if (source.sizes16) {
      room = size = static_cast<uint64_t>(__ldg(source.sizes16 + slot)) * shape.unit;
      at += bytes_of_rows(source.sizes16 + first, count, shape.unit, source.align);
    } else {
      room = size = static_cast<uint64_t>(__ldg(source.sizes32 + slot)) * shape.unit;
      for (unsigned k = 0; k < count; ++k) {
        const uint64_t bytes = static_cast<uint64_t>(__ldg(source.sizes32 + first + k)) * shape.unit;
        at += (bytes + source.align - 1) & ~static_cast<uint64_t>(source.align - 1);
      }
    }
    if (at & (source.align - 1)) return false;
  }
  const uint64_t rows_bytes = source.slab_bytes - 2 * kPadBytes;
  if (room > rows_bytes || at > rows_bytes - room) return false;
  if (encoded ? size < shape.head_bytes || size >= shape.row_bytes : size != shape.row_bytes) return false;
  const uint8_t* row = source.slab + kPadBytes + at;
  place.skip = static_cast<uint32_t>(reinterpret_cast<uint64_t>(row)) & (kLineBytes - 1);
  place.line = row - place.skip;
  place.size = static_cast<uint32_t>(size);
  return true;
}

}  // namespace gnn_ibp
