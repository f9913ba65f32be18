// The one interface behind which a row format stands: everything else treats an encoded row as bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/simd_level.h"

namespace gnn_ibp {

// A decoder may load this many bytes before and after a row; slabs and files keep that much padding.
inline constexpr size_t kPadBytes = 64;

// A stored row, and where its raw bytes go.
struct DecodeJob {
  const uint8_t* stored;
  size_t size;
  uint8_t* row;
};

// A row format together with its parameters. Immutable; all members may be called from many threads.
class RowCodec {
 public:
  virtual ~RowCodec() = default;

  size_t row_bytes() const { return row_bytes_; }       // of a raw row
  size_t unit() const { return unit_; }                 // sizes of stored rows are multiples of this
  SimdLevel simd_level() const { return simd_level_; }  // of its instructions; no bit depends on it

  // Bytes `row` takes when stored; row_bytes() means that encoding does not pay and it is stored raw.
  virtual size_t stored_size(const uint8_t* row) const = 0;

  // Writes the stored_size(row) bytes of an encoded row. Not to be called for a row that is stored raw.
  virtual void encode(const uint8_t* row, uint8_t* stored) const = 0;

  // Whether `stored` starts a well-formed encoded row of exactly `size` bytes. Reads no more than `size`
  // bytes and padding, whatever they hold.
  virtual bool check(const uint8_t* stored, size_t size) const = 0;

  // The bytes of the well-formed encoded row that `stored` starts with, or 0 where none fits into `limit`
  // bytes: for the in-place layout, which has no index. A format whose rows do not tell their size has no
  // such layout and always says 0.
  virtual size_t announced_size(const uint8_t* stored, size_t limit) const = 0;
  virtual bool announces_size() const = 0;

  // Writes row_bytes() bytes. The row must have passed check() with this size, or announced_size() gave it.
  virtual void decode(const uint8_t* stored, size_t size, uint8_t* row) const = 0;

  // check() and decode(), in one pass where the format allows it. Where false, what `row` holds is undefined.
  virtual bool try_decode(const uint8_t* stored, size_t size, uint8_t* row) const {
    if (!check(stored, size)) return false;
    decode(stored, size, row);
    return true;
  }

  // try_decode() of two rows; a format may be faster with two side by side. False where one is not
  // well-formed.
  virtual bool try_decode_two(const DecodeJob (&jobs)[2]) const {
    return try_decode(jobs[0].stored, jobs[0].size, jobs[0].row) &&
           try_decode(jobs[1].stored, jobs[1].size, jobs[1].row);
  }

 protected:
  RowCodec(size_t row_bytes, size_t unit, SimdLevel simd_level)
      : row_bytes_(row_bytes), unit_(unit), simd_level_(simd_level) {}

 private:
  size_t row_bytes_, unit_;
  SimdLevel simd_level_;
};

}  // namespace gnn_ibp
