// Rows encoded, and decoded by id, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "bindings/row_arrays.h"
#include "cpu/encode_rows.h"
#include "cpu/gather_decode.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {

void bind_rows(nb::module_& m) {
  nb::class_<StoredRows>(m, "StoredRows", "The arrays of gnn_ibp.rows.EncodedRows.")
      .def(nb::init<In<uint8_t, 1>, In<uint8_t, 1>, std::optional<In<uint64_t, 1>>,
                    std::optional<In<uint16_t, 1>>, std::optional<In<uint32_t, 1>>, int64_t, uint64_t,
                    uint64_t, uint64_t>(),
           "data"_a.noconvert(), "bitmask"_a.noconvert(), "bases"_a.noconvert().none(),
           "sizes16"_a.noconvert().none(), "sizes32"_a.noconvert().none(), "num_rows"_a, "row_bytes"_a,
           "unit"_a, "align"_a);

  m.def(
      "stored_sizes",
      [](const RowCodec& codec, In<uint8_t, 2> rows, Out<int64_t, 1> sizes) {
        require(rows.shape(1) == codec.row_bytes(), "rows have another width than the codec's");
        require(rows.shape(0) == sizes.size(), "sizes and rows differ in length");
        nb::gil_scoped_release release;
        stored_sizes(codec, rows.data(), static_cast<int64_t>(rows.shape(0)), sizes.data());
      },
      "codec"_a, "rows"_a.noconvert(), "sizes"_a.noconvert());

  m.def(
      "encode_rows",
      [](const RowCodec& codec, In<uint8_t, 2> rows, const StoredRows& stored, Out<uint8_t, 1> data) {
        require(data.data() == stored.data.data(), "data is not that of stored");
        require_rows_of(codec, stored.layout);
        require(rows.shape(1) == codec.row_bytes(), "rows have another width than the codec's");
        require(static_cast<int64_t>(rows.shape(0)) == stored.layout.num_rows, "wrong number of rows");
        nb::gil_scoped_release release;
        encode_rows(codec, rows.data(), stored.layout, data.data() + kPadBytes);
      },
      "codec"_a, "rows"_a.noconvert(), "stored"_a, "data"_a.noconvert());

  nb::class_<RowSource>(m, "RowSource",
                        "Encoded rows, their codec and, where not every row is there, its slot.")
      .def(
          "__init__",
          [](RowSource* source, const RowCodec& codec, const StoredRows& stored,
             std::optional<In<int32_t, 1>> slot_of) {
            require_rows_of(codec, stored.layout);
            new (source) RowSource{&codec, stored.layout, stored.first(), stored.num_bytes(),
                                   slot_of ? slot_of->data() : nullptr};
          },
          "codec"_a, "stored"_a, "slot_of"_a.noconvert().none(), nb::keep_alive<1, 2>(),
          nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());

  nb::class_<GatherCounts>(m, "GatherCounts")
      .def_ro("num_missing", &GatherCounts::num_missing)
      .def_ro("damaged", &GatherCounts::damaged)
      .def("hits", [](const GatherCounts& counts, int source) { return counts.hits[source]; })
      .def("encoded_bytes",
           [](const GatherCounts& counts, int source) { return counts.encoded_bytes[source]; });

  m.def(
      "gather_decode",
      [](In<int64_t, 1> ids, std::optional<In<int64_t, 1>> at, const std::vector<const RowSource*>& sources,
         Out<uint8_t, 2> out, Out<int64_t, 1> missing_ids, Out<int64_t, 1> missing_at) {
        const size_t n = ids.size();
        require(sources.size() <= static_cast<size_t>(kMaxSources), "too many sources");
        require(missing_ids.size() >= n && missing_at.size() >= n, "the missing lists are too short");
        require(!at || at->size() == n, "at and ids differ in length");
        RowSource copies[kMaxSources];
        for (size_t s = 0; s < sources.size(); ++s) {
          copies[s] = *sources[s];
          require(copies[s].codec->row_bytes() == out.shape(1), "out has another width than a source");
        }
        nb::gil_scoped_release release;
        return gather_decode(ids.data(), at ? at->data() : nullptr, static_cast<int64_t>(n), copies,
                             static_cast<int>(sources.size()), out.shape(1), out.data(), missing_ids.data(),
                             missing_at.data());
      },
      "ids"_a.noconvert(), "at"_a.noconvert().none(), "sources"_a, "out"_a.noconvert(),
      "missing_ids"_a.noconvert(), "missing_at"_a.noconvert());
}

}  // namespace gnn_ibp
