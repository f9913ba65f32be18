// Stored rows whose parts are arrays of NumPy.
#pragma once

#include <optional>

#include "bindings/arrays.h"
#include "cpu/encoded_rows.h"
#include "cpu/row_codec.h"

namespace gnn_ibp {

// Bitmask and index of stored rows, held for as long as kernels look into them.
struct RowTable {
  RowTable(In<uint8_t, 1> bitmask, std::optional<In<uint64_t, 1>> bases,
           std::optional<In<uint16_t, 1>> sizes16, std::optional<In<uint32_t, 1>> sizes32, int64_t num_rows,
           uint64_t row_bytes, uint64_t unit, uint64_t align)
      : bitmask(bitmask), bases(bases), sizes16(sizes16), sizes32(sizes32) {
    require(num_rows >= 0 && bitmask.size() * 8 >= static_cast<size_t>(num_rows), "bitmask is too short");
    layout.num_rows = num_rows;
    layout.row_bytes = row_bytes;
    layout.bitmask = bitmask.data();
    if (bases) {
      const size_t num_sizes = sizes16 ? sizes16->size() : sizes32 ? sizes32->size() : 0;
      require(num_sizes >= static_cast<size_t>(num_rows), "the index has too few sizes");
      require(bases->size() * RowLayout::kGroup >= static_cast<size_t>(num_rows),
              "the index has too few bases");
      require(unit > 0 && align > 0, "unit and align must be positive");
      layout.bases = bases->data();
      layout.sizes16 = sizes16 ? sizes16->data() : nullptr;
      layout.sizes32 = sizes32 ? sizes32->data() : nullptr;
      layout.unit = unit;
      layout.align = align;
    }
  }

  In<uint8_t, 1> bitmask;
  std::optional<In<uint64_t, 1>> bases;
  std::optional<In<uint16_t, 1>> sizes16;
  std::optional<In<uint32_t, 1>> sizes32;
  RowLayout layout;
};

// The arrays of gnn_ibp.rows.EncodedRows, held likewise.
struct StoredRows : RowTable {
  StoredRows(In<uint8_t, 1> data, In<uint8_t, 1> bitmask, std::optional<In<uint64_t, 1>> bases,
             std::optional<In<uint16_t, 1>> sizes16, std::optional<In<uint32_t, 1>> sizes32, int64_t num_rows,
             uint64_t row_bytes, uint64_t unit, uint64_t align)
      : RowTable(bitmask, bases, sizes16, sizes32, num_rows, row_bytes, unit, align), data(data) {
    require(data.size() >= 2 * kPadBytes, "data is shorter than its padding");
    require(bases || num_rows == 0 || row_bytes <= num_bytes() / static_cast<uint64_t>(num_rows),
            "data is too short");
  }

  const uint8_t* first() const { return data.data() + kPadBytes; }
  uint64_t num_bytes() const { return data.size() - 2 * kPadBytes; }

  In<uint8_t, 1> data;
};

// The codec's rows, in a layout that its format has.
inline void require_rows_of(const RowCodec& codec, const RowLayout& layout) {
  require(layout.row_bytes == codec.row_bytes(), "rows have another width than the codec's");
  require(!layout.in_place() || codec.announces_size(), "rows of this format cannot be stored in place");
}

}  // namespace gnn_ibp
