#include "cpu/encode_rows.h"

#include <algorithm>

#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr size_t kPieceBytes = 128 * 1024;  // of rows, for one thread at a time

int64_t rows_per_piece(size_t row_bytes) {
  return std::max<int64_t>(1, static_cast<int64_t>(kPieceBytes / std::max<size_t>(1, row_bytes)));
}

}  // namespace

void stored_sizes(const RowCodec& codec, const uint8_t* rows, int64_t num_rows, int64_t* sizes) {
  const size_t row_bytes = codec.row_bytes();
  parallel_for(num_rows, rows_per_piece(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sizes[i] = static_cast<int64_t>(codec.stored_size(rows + static_cast<size_t>(i) * row_bytes));
  });
}

void encode_rows(const RowCodec& codec, const uint8_t* rows, const RowLayout& layout, uint8_t* first) {
  const size_t row_bytes = codec.row_bytes();
  parallel_for(layout.num_rows, rows_per_piece(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* row = rows + static_cast<size_t>(i) * row_bytes;
      uint8_t* stored = first + layout.extent(i).at;
      if (layout.encoded(i)) {
        codec.encode(row, stored);
      } else {
        std::copy_n(row, row_bytes, stored);
      }
    }
  });
}

}  // namespace gnn_ibp
