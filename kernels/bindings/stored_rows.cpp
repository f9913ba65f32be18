// Rows read from disk, measured and moved as they are stored, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/row_arrays.h"
#include "cpu/read_rows.h"
#include "cpu/stored_rows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

void require_rows(const In<int64_t, 1>& ids, const RowLayout& layout) {
  for (size_t i = 0; i < ids.size(); ++i)
    require(static_cast<uint64_t>(ids.data()[i]) < static_cast<uint64_t>(layout.num_rows), "no such row");
}

const char* name_of(ReadFailure failure) {
  switch (failure) {
    case ReadFailure::kCutShort:
      return "cut short";
    case ReadFailure::kSystem:
      return "system";
    case ReadFailure::kDamaged:
      return "damaged";
    default:
      return "";
  }
}

}  // namespace

void bind_stored_rows(nb::module_& m) {
  nb::class_<RowTable>(m, "RowTable", "Bitmask and index of rows that lie in a file.")
      .def(nb::init<In<uint8_t, 1>, std::optional<In<uint64_t, 1>>, std::optional<In<uint16_t, 1>>,
                    std::optional<In<uint32_t, 1>>, int64_t, uint64_t, uint64_t, uint64_t>(),
           "bitmask"_a.noconvert(), "bases"_a.noconvert().none(), "sizes16"_a.noconvert().none(),
           "sizes32"_a.noconvert().none(), "num_rows"_a, "row_bytes"_a, "unit"_a, "align"_a);

  m.def(
      "check_index",
      [](const RowTable& table, uint64_t rows_bytes) {
        require(table.bases.has_value(), "rows in place have no index");
        nb::gil_scoped_release release;
        return check_index(table.layout, rows_bytes);
      },
      "table"_a, "rows_bytes"_a);

  nb::class_<ReadResult>(m, "ReadResult")
      .def_ro("encoded_bytes", &ReadResult::encoded_bytes)
      .def_ro("physical_bytes", &ReadResult::physical_bytes)
      .def_prop_ro("failure", [](const ReadResult& result) { return name_of(result.failure); })
      .def_ro("error", &ReadResult::error)
      .def_ro("first_row", &ReadResult::first_row)
      .def_ro("last_row", &ReadResult::last_row);

  m.def(
      "read_rows",
      [](int fd, uint64_t rows_at, uint64_t file_bytes, const RowTable& table, const RowCodec& codec,
         In<int64_t, 1> ids, std::optional<In<int64_t, 1>> at, Out<uint8_t, 2> out) {
        const size_t n = ids.size();
        require_rows_of(codec, table.layout);
        require(out.shape(1) == codec.row_bytes(), "rows have another width than the codec's");
        require(at ? at->size() == n : out.shape(0) >= n, "at or out is too short");
        const RowsOnDisk file{fd, rows_at, file_bytes, table.layout};
        nb::gil_scoped_release release;
        require_rows(ids, table.layout);
        return read_rows(file, codec, ids.data(), at ? at->data() : nullptr, static_cast<int64_t>(n),
                         out.data());
      },
      "fd"_a, "rows_at"_a, "file_bytes"_a, "table"_a, "codec"_a, "ids"_a.noconvert(),
      "at"_a.noconvert().none(), "out"_a.noconvert());

  m.def(
      "read_stored",
      [](int fd, uint64_t rows_at, uint64_t file_bytes, const RowTable& table, const RowCodec& codec,
         In<int64_t, 1> ids, Out<uint8_t, 1> data, Out<uint8_t, 1> bitmask, Out<uint64_t, 1> bases,
         std::optional<Out<uint16_t, 1>> sizes16, std::optional<Out<uint32_t, 1>> sizes32, uint64_t unit,
         uint64_t align) {
        const size_t n = ids.size();
        require_rows_of(codec, table.layout);
        require(unit > 0 && align > 0 && align % unit == 0, "align is no multiple of unit");
        const uint64_t row_room = (codec.row_bytes() + align - 1) / align * align;
        require(data.size() >= 2 * kPadBytes, "data is shorter than its padding");
        require(row_room == 0 || (data.size() - 2 * kPadBytes) / row_room >= n, "data is too short");
        require(bitmask.size() * 8 >= n && bases.size() * RowLayout::kGroup >= n, "the index is too short");
        require(sizes16 ? sizes16->size() >= n : sizes32 && sizes32->size() >= n, "too few sizes");
        const RowSlab slab{data.data() + kPadBytes,
                           align,
                           unit,
                           bitmask.data(),
                           bases.data(),
                           sizes16 ? sizes16->data() : nullptr,
                           sizes16 ? nullptr : sizes32->data()};
        const RowsOnDisk file{fd, rows_at, file_bytes, table.layout};
        nb::gil_scoped_release release;
        require_rows(ids, table.layout);
        return read_stored(file, codec, ids.data(), static_cast<int64_t>(n), slab);
      },
      "fd"_a, "rows_at"_a, "file_bytes"_a, "table"_a, "codec"_a, "ids"_a.noconvert(), "data"_a.noconvert(),
      "bitmask"_a.noconvert(), "bases"_a.noconvert(), "sizes16"_a.noconvert().none(),
      "sizes32"_a.noconvert().none(), "unit"_a, "align"_a);

  m.def(
      "measure_rows",
      [](const RowCodec& codec, const StoredRows& rows, In<int64_t, 1> ids, Out<int64_t, 1> sizes) {
        require_rows_of(codec, rows.layout);
        require(ids.size() == sizes.size(), "sizes and ids differ in length");
        nb::gil_scoped_release release;
        require_rows(ids, rows.layout);
        measure_rows(rows.layout, codec, rows.first(), ids.data(), static_cast<int64_t>(ids.size()),
                     sizes.data());
      },
      "codec"_a, "rows"_a, "ids"_a.noconvert(), "sizes"_a.noconvert());

  m.def(
      "copy_rows",
      [](const StoredRows& from, In<int64_t, 1> ids, const StoredRows& to, Out<uint8_t, 1> to_data,
         In<int64_t, 1> slots) {
        require(to_data.data() == to.data.data(), "to_data is not that of to");
        require(ids.size() == slots.size(), "slots and ids differ in length");
        require(from.layout.row_bytes == to.layout.row_bytes && !to.layout.in_place(), "cannot copy there");
        nb::gil_scoped_release release;
        require_rows(ids, from.layout);
        require_rows(slots, to.layout);
        copy_rows(from.layout, from.first(), ids.data(), to.layout, to_data.data() + kPadBytes, slots.data(),
                  static_cast<int64_t>(ids.size()));
      },
      "source"_a, "ids"_a.noconvert(), "target"_a, "target_data"_a.noconvert(), "slots"_a.noconvert());
}

}  // namespace gnn_ibp
