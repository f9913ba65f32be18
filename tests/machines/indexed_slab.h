// Room for encoded rows in either layout, and its index, made from the sizes of the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

class IndexedSlab {
 public:
  IndexedSlab(const std::vector<int64_t>& sizes, int64_t row_bytes, size_t unit, bool in_place)
      : bitmask_((sizes.size() + 7) / 8), sizes_(sizes.size()) {
    layout_.num_rows = static_cast<int64_t>(sizes.size());
    layout_.row_bytes = static_cast<uint64_t>(row_bytes);
    layout_.bitmask = bitmask_.data();
    layout_.unit = unit;
    layout_.align = unit < 4 ? 4 : unit;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] < row_bytes) bitmask_[i / 8] |= static_cast<uint8_t>(1 << i % 8);
    num_bytes_ = in_place ? layout_.num_rows * layout_.row_bytes : write_index(sizes);
    data_.resize(num_bytes_ + 2 * kPadBytes);
  }
  IndexedSlab(const IndexedSlab&) = delete;  // the layout points into it

  const RowLayout& layout() const { return layout_; }
  const uint8_t* first() const { return data_.data() + kPadBytes; }
  uint8_t* first() { return data_.data() + kPadBytes; }
  uint64_t num_bytes() const { return num_bytes_; }

 private:
  uint64_t write_index(const std::vector<int64_t>& sizes) {
    uint64_t at = 0;
    bases_.resize(1);  // there is an index where there are no rows, too
    layout_.sizes32 = sizes_.data();
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i % RowLayout::kGroup == 0) {
        bases_.resize(i / RowLayout::kGroup + 1);
        bases_.back() = at;
      }
      sizes_[i] = static_cast<uint32_t>(sizes[i] / layout_.unit);
      at += layout_.aligned(static_cast<uint64_t>(sizes[i]));
    }
    layout_.bases = bases_.data();
    return at;
  }

  RowLayout layout_;
  std::vector<uint8_t> bitmask_, data_;
  std::vector<uint64_t> bases_;
  std::vector<uint32_t> sizes_;
  uint64_t num_bytes_ = 0;
};

}  // namespace gnn_ibp
