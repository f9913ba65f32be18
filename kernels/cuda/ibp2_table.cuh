// The parameters of row format version 2 on the device, as gnn_ibp.ops.device_ibp2 lays them out.
//
//   64 bytes          numbers: Ibp2Numbers
//   96 bytes          codes of level 1, 2 and 3: what a field says, a byte each
//   32 words          leaves; of 64 bits where W = 64, else of 32, E bits at the top
//   kind D, a chunk:  base, W bits, E bits at the top
//                     place, a byte: bits 0 to 4 tell where its field of level 1 begins among the lane's,
//                     5 and 6 its class, 7 its sgn
//   kind D, a lane:   a word, the bit of level 1 at which the fields of its chunks begin
//
// A lane makes 16 bytes of a decoded row, from `at` times 16 bytes on. Rows are filled up to whole pieces of
// the lanes that make a row together; those longer than 512 bytes to whole blocks of 256 chunks.
//
//   a code            bit 7: the next level tells, by the table that begins at bits 0 to 4; else
//                     bit 6 t, bits 0 to 4 the number of a leaf
//   level 1           8 codes a class, for any 3 bits that begin with the field
//   level 2           4 codes for each field that leads there, 8 a class
//   level 3           8 codes a class; the last one is bit 7 alone, and means RAW
#pragma once

#include "cuda/row_source.cuh"

namespace gnn_ibp {

constexpr uint32_t kIbp2BlockChunks = 256;
constexpr uint32_t kIbp2LevelCodes = 32;
constexpr uint32_t kIbp2Leaves = 32;
constexpr uint32_t kIbp2Levels = 3;  // of fields, and of bitmaps at most
constexpr uint32_t kLinks = 0x80, kFlips = 0x40;

// A register that the top of a chunk is made in; E bits of an exponent begin at its highest.
template <unsigned W>
struct Ibp2Word {
  typedef uint32_t type;
};
template <>
struct Ibp2Word<64> {
  typedef uint64_t type;
};

// Of all rows. The last four are of kind S, where all chunks have the same.
struct alignas(16) Ibp2Numbers {
  uint32_t sign_bits, zero_bits;  // sf, z
  uint32_t low_bits, high_bits;   // of a chunk in the two planes
  uint32_t top_bits;              // sf + E
  uint32_t first_bits;            // level 1 of all chunks, kind D; of one chunk, kind S
  uint32_t levels;                // of the bitmap
  uint32_t places[2];             // of a lane's chunks
  uint32_t zero[2];
  uint32_t unused;
  uint4 base;  // of a lane's chunks
};

// What a lane needs of the parameters for 16 bytes of a row.
template <unsigned W>
struct Ibp2Part {
  uint4 base;
  uint32_t places[W == 16 ? 2 : 1];
  uint32_t first_at;  // where its fields of level 1 begin
  uint32_t valid;     // a bit for each of its chunks that there is

  __device__ __forceinline__ uint32_t place(unsigned i) const {
    return places[W == 16 ? i / 4 : 0] >> 8 * (i % 4) & 0xFF;
  }
};

template <unsigned W>
class Ibp2Table {
 public:
  typedef typename Ibp2Word<W>::type Word;

  static constexpr uint32_t kUnit = W / 8;
  static constexpr uint32_t kSizeUnit = kUnit < 4 ? 4 : kUnit;  // encoded rows are multiples of it
  static constexpr uint32_t kChunks = 128 / W;                  // of a lane

  // To be called by all threads of a block. `pieces_bytes`: of a row, filled up.
  __device__ __forceinline__ Ibp2Table(const uint8_t* table, uint32_t row_bytes, uint32_t pieces_bytes)
      : numbers(*reinterpret_cast<const Ibp2Numbers*>(table)),
        num_chunks(row_bytes / kUnit),
        chunks_(table + sizeof(Ibp2Numbers) + kIbp2Levels * kIbp2LevelCodes + kIbp2Leaves * sizeof(Word)),
        pieces_bytes_(pieces_bytes) {
    SIMT_SHARED(uint32_t, shared_codes, [kIbp2Levels * kIbp2LevelCodes / 4]);
    SIMT_SHARED(Word, shared_leaves, [kIbp2Leaves]);
    const uint32_t* codes = reinterpret_cast<const uint32_t*>(table + sizeof(Ibp2Numbers));
    const Word* leaves = reinterpret_cast<const Word*>(codes + kIbp2Levels * kIbp2LevelCodes / 4);
    if (threadIdx.x < kIbp2Levels * kIbp2LevelCodes / 4)
      shared_codes[threadIdx.x] = __ldg(codes + threadIdx.x);
    if (threadIdx.x < kIbp2Leaves) shared_leaves[threadIdx.x] = __ldg(leaves + threadIdx.x);
    __syncthreads();
    codes_ = reinterpret_cast<const uint8_t*>(shared_codes);
    leaves_ = shared_leaves;
  }

  // Of kind D, the 16 bytes that begin at `at` times 16.
  __device__ __forceinline__ void load(uint32_t at, Ibp2Part<W>& part) const {
    const uint8_t* places = chunks_ + pieces_bytes_;
    const uint8_t* first_at = places + pieces_bytes_ / kUnit;
    part.base = __ldg(reinterpret_cast<const uint4*>(chunks_) + at);
    load_places(places, at, part);
    part.first_at = __ldg(reinterpret_cast<const uint32_t*>(first_at) + at);
    part.valid = valid(at * kChunks, num_chunks);
  }

  // Of kind S, the coded chunks from `first` on, of `count`.
  __device__ __forceinline__ void load_coded(uint32_t first, uint32_t count, Ibp2Part<W>& part) const {
    part.base = numbers.base;
    part.places[0] = numbers.places[0];
    if (W == 16) part.places[W == 16 ? 1 : 0] = numbers.places[1];
    part.first_at = min(first, count) * numbers.first_bits;
    part.valid = valid(first, count);
  }

  // A bit for each of a lane's chunks `first` and on that is below `count`.
  static __device__ __forceinline__ uint32_t valid(uint32_t first, uint32_t count) {
    const uint32_t left = count > first ? count - first : 0;
    return (1u << (left < kChunks ? left : kChunks)) - 1;
  }

  __device__ __forceinline__ const uint8_t* codes(uint32_t level) const {
    return codes_ + level * kIbp2LevelCodes;
  }
  __device__ __forceinline__ Word leaf(uint32_t code) const { return leaves_[code % kIbp2Leaves]; }

  const Ibp2Numbers numbers;
  const uint32_t num_chunks;

 private:
  static __device__ __forceinline__ void load_places(const uint8_t* places, uint32_t at, Ibp2Part<W>& part) {
    if (W == 16) {
      const uint2 eight = __ldg(reinterpret_cast<const uint2*>(places) + at);
      part.places[0] = eight.x;
      part.places[W == 16 ? 1 : 0] = eight.y;
    } else if (W == 32) {
      part.places[0] = __ldg(reinterpret_cast<const uint32_t*>(places) + at);
    } else {
      part.places[0] = __ldg(reinterpret_cast<const uint16_t*>(places) + at);
    }
  }

  const uint8_t* chunks_;
  const uint32_t pieces_bytes_;
  const uint8_t* codes_;
  const Word* leaves_;
};

}  // namespace gnn_ibp
