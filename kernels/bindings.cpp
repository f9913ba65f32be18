// With bindings/ all that knows Python: arrays come as nanobind ndarrays, leave as raw pointers, the GIL
// released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/ibp2_codec.h"
#include "bindings/ibp2_counts.h"
#include "cpu/csc.h"
#include "cpu/edge_records.h"
#include "cpu/encode_rows.h"
#include "cpu/fit.h"
#include "cpu/gather_decode.h"
#include "cpu/huge_pages.h"
#include "cpu/ibp_codec.h"
#include "cpu/neighbor_mean.h"
#include "cpu/read_rows.h"
#include "cpu/relu_dropout.h"
#include "cpu/sample.h"
#include "cpu/stored_rows.h"
#include "cpu/thread_pool.h"
#include "random.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gnn_ibp;

namespace {

// ---- threads ----------------------------------------------------------------------------------------

void bind_threads(nb::module_& m) {
  m.def("set_num_threads", &set_num_threads, "num_threads"_a);
  m.def("num_threads", &num_threads);
}

// ---- rows: codecs, encoding, decoding by id ---------------------------------------------------------

template <typename T, size_t Dims>
using In = nb::ndarray<const T, nb::numpy, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <typename T, size_t Dims>
using Out = nb::ndarray<T, nb::numpy, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

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
void require_rows_of(const RowCodec& codec, const RowLayout& layout) {
  require(layout.row_bytes == codec.row_bytes(), "rows have another width than the codec's");
  require(!layout.in_place() || codec.announces_size(), "rows of this format cannot be stored in place");
}

void require_masks(const In<int64_t, 1>& ones, size_t row_bytes, const Out<uint8_t, 1>& mask,
                   const Out<uint8_t, 1>& bitval) {
  require(ones.size() == 8 * row_bytes, "ones has not a number for each bit");
  require(mask.size() == row_bytes && bitval.size() == row_bytes,
          "mask and bitval want as many bytes as a row");
}

void require_chunk_bits(int bits, size_t row_bytes) {
  require(bits == 8 || bits == 16 || bits == 32 || bits == 64, "chunk_bits is not 8, 16, 32 or 64");
  require(row_bytes % (bits / 8) == 0, "chunk_bits does not divide the row");
}

void bind_rows(nb::module_& m) {
  nb::class_<RowCodec>(m, "RowCodec", "A row format with its parameters.")
      .def_prop_ro("row_bytes", &RowCodec::row_bytes)
      .def_prop_ro("unit", &RowCodec::unit)
      .def_prop_ro("simd", [](const RowCodec& codec) { return name_of(codec.simd_level()); });

  m.def("simd_levels", [] {
    std::vector<std::string> names;
    for (const SimdLevel level : supported_simd_levels()) names.push_back(name_of(level));
    return names;
  });

  m.def(
      "ibp_codec",
      [](In<uint8_t, 1> mask, In<uint8_t, 1> bitval, int chunk_bits) {
        require(mask.size() == bitval.size(), "mask and bitval differ in length");
        return make_ibp_codec(mask.data(), bitval.data(), mask.size(), chunk_bits,
                              simd_level(SimdLevel::kAvx2));
      },
      "mask"_a.noconvert(), "bitval"_a.noconvert(), "chunk_bits"_a);

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

  m.def(
      "fit_positions",
      [](In<uint8_t, 2> rows, const std::vector<int>& chunk_bits, Out<uint8_t, 2> masks,
         Out<uint8_t, 2> bitvals, Out<int64_t, 1> ones) {
        const size_t row_bytes = rows.shape(1);
        for (const int bits : chunk_bits) require_chunk_bits(bits, row_bytes);
        for (const auto& out : {masks, bitvals})
          require(out.shape(0) == chunk_bits.size() && out.shape(1) == row_bytes,
                  "masks and bitvals want a row of row_bytes for each width");
        require(ones.size() == 8 * row_bytes, "ones has not a number for each bit");
        nb::gil_scoped_release release;
        fit_positions(rows.data(), static_cast<int64_t>(rows.shape(0)), row_bytes, chunk_bits, masks.data(),
                      bitvals.data(), ones.data());
      },
      "rows"_a.noconvert(), "chunk_bits"_a, "masks"_a.noconvert(), "bitvals"_a.noconvert(),
      "ones"_a.noconvert());

  m.def(
      "fit_threshold",
      [](In<int64_t, 1> ones, int64_t num_rows, int percent, Out<uint8_t, 1> mask, Out<uint8_t, 1> bitval) {
        require_masks(ones, mask.size(), mask, bitval);
        nb::gil_scoped_release release;
        fit_threshold(ones.data(), num_rows, mask.size(), percent, mask.data(), bitval.data());
      },
      "ones"_a.noconvert(), "num_rows"_a, "percent"_a, "mask"_a.noconvert(), "bitval"_a.noconvert());

  m.def(
      "fit_sweep",
      [](In<uint8_t, 2> rows, In<int64_t, 1> ones, int chunk_bits, Out<uint8_t, 1> mask,
         Out<uint8_t, 1> bitval) {
        require_masks(ones, rows.shape(1), mask, bitval);
        require_chunk_bits(chunk_bits, rows.shape(1));
        nb::gil_scoped_release release;
        fit_sweep(rows.data(), static_cast<int64_t>(rows.shape(0)), rows.shape(1), ones.data(), chunk_bits,
                  mask.data(), bitval.data());
      },
      "rows"_a.noconvert(), "ones"_a.noconvert(), "chunk_bits"_a, "mask"_a.noconvert(),
      "bitval"_a.noconvert());

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

// ---- files and caches: rows read from disk, measured and moved as they are stored -------------------

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

// ---- model: neighbor means, ReLU with dropout --------------------------------------------------------

// Rows may stand apart, as columns of a wider matrix do.
using FloatMatrix = nb::ndarray<float, nb::numpy, nb::ndim<2>, nb::device::cpu>;
using ConstFloatMatrix = nb::ndarray<const float, nb::numpy, nb::ndim<2>, nb::device::cpu>;

FloatRows rows_of(const FloatMatrix& m) { return {m.data(), m.stride(0), static_cast<int64_t>(m.shape(1))}; }
ConstFloatRows rows_of(const ConstFloatMatrix& m) {
  require(m.shape(1) <= 1 || m.stride(1) == 1, "the columns of a row must lie back to back");
  return {m.data(), m.stride(0), static_cast<int64_t>(m.shape(1))};
}

template <typename Index>
Csr<Index> csr_of(const In<int64_t, 1>& indptr, const In<Index, 1>& indices) {
  return {indptr.data(), indices.data(), static_cast<int64_t>(indptr.shape(0)) - 1};
}

template <typename Index>
void py_neighbor_mean(const ConstFloatMatrix& x, const In<int64_t, 1>& indptr, const In<Index, 1>& indices,
                      const FloatMatrix& out) {
  nb::gil_scoped_release release;
  neighbor_mean(rows_of(x), csr_of(indptr, indices), rows_of(out));
}

void py_mean_and_own(const ConstFloatMatrix& x, const In<int64_t, 1>& indptr, const In<int64_t, 1>& indices,
                     const std::optional<In<float, 1>>& shift, const std::optional<In<float, 1>>& factor,
                     const FloatMatrix& out) {
  const Affine affine{shift ? shift->data() : nullptr, factor ? factor->data() : nullptr};
  nb::gil_scoped_release release;
  mean_and_own(rows_of(x), csr_of(indptr, indices), affine, rows_of(out));
}

void py_mean_and_own_grad(const ConstFloatMatrix& grad_out, const In<int64_t, 1>& indptr,
                          const In<int64_t, 1>& indices, const FloatMatrix& grad_x) {
  nb::gil_scoped_release release;
  mean_and_own_grad(rows_of(grad_out), csr_of(indptr, indices), static_cast<int64_t>(grad_x.shape(0)),
                    rows_of(grad_x));
}

using FloatArray = nb::ndarray<float, nb::numpy, nb::c_contig, nb::device::cpu>;
using ConstFloatArray = nb::ndarray<const float, nb::numpy, nb::c_contig, nb::device::cpu>;

void py_relu_dropout(const FloatArray& h, uint64_t key, uint32_t drop) {
  nb::gil_scoped_release release;
  relu_dropout(h.data(), static_cast<int64_t>(h.size()), key, drop);
}

void py_relu_dropout_grad(const ConstFloatArray& out, const ConstFloatArray& grad_out, uint32_t drop,
                          const FloatArray& grad_in) {
  nb::gil_scoped_release release;
  relu_dropout_grad(out.data(), grad_out.data(), static_cast<int64_t>(out.size()), drop, grad_in.data());
}

void bind_model(nb::module_& m) {
  m.def("neighbor_mean", &py_neighbor_mean<int32_t>, "x"_a, "indptr"_a, "indices"_a, "out"_a);
  m.def("neighbor_mean", &py_neighbor_mean<int64_t>, "x"_a, "indptr"_a, "indices"_a, "out"_a);
  m.def("mean_and_own", &py_mean_and_own, "x"_a, "indptr"_a, "indices"_a, "shift"_a.none(), "factor"_a.none(),
        "out"_a);
  m.def("mean_and_own_grad", &py_mean_and_own_grad, "grad_out"_a, "indptr"_a, "indices"_a, "grad_x"_a);
  m.def("relu_dropout", &py_relu_dropout, "h"_a, "key"_a, "drop"_a);
  m.def("relu_dropout_grad", &py_relu_dropout_grad, "out"_a, "grad_out"_a, "drop"_a, "grad_in"_a);
}

// ---- graph and sampler ------------------------------------------------------------------------------

template <class T>
Out<T, 1> to_numpy(Huge<T> values, int64_t size) {
  nb::capsule owner(values.get(), [](void* memory) noexcept { Free()(memory); });
  return Out<T, 1>(values.release(), {static_cast<size_t>(size)}, owner);
}

template <class T>
Huge<T> copied(const T* values, int64_t size) {
  Huge<T> copy = make_huge<T>(size);
  std::copy(values, values + size, copy.get());
  return copy;
}

template <class Index>
Csc<Index> csc_view(const In<int64_t, 1>& indptr, const In<Index, 1>& indices) {
  return {indptr.data(), indices.data(), static_cast<int64_t>(indptr.size()) - 1,
          static_cast<int64_t>(indices.size())};
}

template <class Id, class Index>
std::tuple<Out<int64_t, 1>, std::variant<Out<int32_t, 1>, Out<int64_t, 1>>, Out<int64_t, 1>> build_csc_as(
    const EdgeList<Id>& edges, int64_t num_nodes, bool undirected, bool dedup) {
  BuiltCsc<Index> built;
  {
    nb::gil_scoped_release release;
    built = build_csc<Id, Index>(edges, num_nodes, undirected, dedup);
  }
  return {to_numpy(std::move(built.indptr), num_nodes + 1),
          to_numpy(std::move(built.indices), built.num_edges),
          to_numpy(std::move(built.perm), built.num_edges)};
}

template <class Id>
void bind_edge_list(nb::module_& m) {
  m.def(
      "first_bad_edge",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes) {
        nb::gil_scoped_release release;
        return first_bad_edge<Id>({src.data(), dst.data(), static_cast<int64_t>(src.size())}, num_nodes);
      },
      "src"_a, "dst"_a, "num_nodes"_a);
  m.def(
      "build_csc",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes, bool undirected, bool dedup) {
        const EdgeList<Id> edges{src.data(), dst.data(), static_cast<int64_t>(src.size())};
        return num_nodes <= int64_t{1} << 31 ? build_csc_as<Id, int32_t>(edges, num_nodes, undirected, dedup)
                                             : build_csc_as<Id, int64_t>(edges, num_nodes, undirected, dedup);
      },
      "src"_a, "dst"_a, "num_nodes"_a, "undirected"_a, "dedup"_a);
}

// ---- edges that are sorted through files ---------------------------------------------------------------

// Records cross the binding as bytes. Calls body(Record()) for the kind of record.
template <class Body>
auto with_record(bool wide, bool ranked, const Body& body) {
  if (ranked) return wide ? body(RankedRecord<uint64_t>()) : body(RankedRecord<uint32_t>());
  return wide ? body(EdgeRecord<uint64_t>()) : body(EdgeRecord<uint32_t>());
}

template <class Record>
const Record* records_of(const In<uint8_t, 1>& bytes, int64_t num_records) {
  require(num_records >= 0 && bytes.size() / sizeof(Record) >= static_cast<size_t>(num_records),
          "the records are too short");
  return reinterpret_cast<const Record*>(bytes.data());
}

template <class Record>
Record* records_of(const Out<uint8_t, 1>& bytes, int64_t num_records) {
  require(num_records >= 0 && bytes.size() / sizeof(Record) >= static_cast<size_t>(num_records),
          "the records are too short");
  return reinterpret_cast<Record*>(bytes.data());
}

template <class Id>
void bind_pack_edges(nb::module_& m) {
  m.def(
      "pack_edges",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes, int64_t first, bool undirected, bool wide,
         bool ranked, Out<uint8_t, 1> out) {
        require(src.size() == dst.size(), "src and dst differ in length");
        const EdgeList<Id> edges{src.data(), dst.data(), static_cast<int64_t>(src.size())};
        return with_record(wide, ranked, [&]<class Record>(Record) {
          Record* records = records_of<Record>(out, undirected ? 2 * edges.num_edges : edges.num_edges);
          nb::gil_scoped_release release;
          return pack_edges(edges, num_nodes, first, undirected, records);
        });
      },
      "src"_a.noconvert(), "dst"_a.noconvert(), "num_nodes"_a, "first"_a, "undirected"_a, "wide"_a,
      "ranked"_a, "out"_a.noconvert());
}

template <class Index>
void bind_sort_records(nb::module_& m) {
  m.def(
      "sort_records",
      [](In<uint8_t, 1> records, bool wide, bool ranked, In<int64_t, 1> starts, int64_t first_node, int shift,
         bool dedup, Out<uint8_t, 1> scratch, Out<Index, 1> indices, std::optional<Out<int64_t, 1>> perm,
         Out<int64_t, 1> counts) {
        require(starts.size() > 0 && starts.data()[0] == 0, "starts must begin with 0");
        const int64_t num_buckets = static_cast<int64_t>(starts.size()) - 1;
        const int64_t num_records = starts.data()[num_buckets];
        require(indices.size() >= static_cast<size_t>(num_records), "indices is too short");
        require(!perm || (ranked && perm->size() >= static_cast<size_t>(num_records)), "perm does not fit");
        require(shift >= 0 && shift < 62 && static_cast<int64_t>(counts.size()) >> shift >= num_buckets,
                "counts is too short");
        return with_record(wide, ranked, [&]<class Record>(Record) {
          require(scratch.size() / sizeof(Tail<Record>) >= static_cast<size_t>(num_records),
                  "scratch is too short");
          const RecordBuckets<Record> buckets{records_of<Record>(records, num_records), starts.data(),
                                              num_buckets, first_node, shift};
          auto* tails = reinterpret_cast<Tail<Record>*>(scratch.data());
          nb::gil_scoped_release release;
          return sort_records(buckets, dedup, tails, indices.data(), perm ? perm->data() : nullptr,
                              counts.data());
        });
      },
      "records"_a.noconvert(), "wide"_a, "ranked"_a, "starts"_a.noconvert(), "first_node"_a, "shift"_a,
      "dedup"_a, "scratch"_a.noconvert(), "indices"_a.noconvert(), "perm"_a.noconvert().none(),
      "counts"_a.noconvert());
}

void bind_edge_records(nb::module_& m) {
  m.def(
      "record_bytes",
      [](bool wide, bool ranked) {
        return with_record(wide, ranked, []<class Record>(Record) {
          return std::pair<size_t, size_t>(sizeof(Record), sizeof(Tail<Record>));
        });
      },
      "wide"_a, "ranked"_a, "bytes of a record, and of what is sorted of it");
  bind_pack_edges<int32_t>(m);
  bind_pack_edges<int64_t>(m);
  m.def(
      "partition_records",
      [](In<uint8_t, 1> records, bool wide, bool ranked, int64_t num_records, int shift, Out<uint8_t, 1> out,
         Out<int64_t, 1> starts) {
        require(starts.size() > 0 && shift >= 0 && shift < 63, "there must be a bucket");
        with_record(wide, ranked, [&]<class Record>(Record) {
          const Record* from = records_of<Record>(records, num_records);
          Record* to = records_of<Record>(out, num_records);
          nb::gil_scoped_release release;
          partition_records(from, num_records, shift, static_cast<int64_t>(starts.size()) - 1, to,
                            starts.data());
        });
      },
      "records"_a.noconvert(), "wide"_a, "ranked"_a, "num_records"_a, "shift"_a, "out"_a.noconvert(),
      "starts"_a.noconvert());
  bind_sort_records<int32_t>(m);
  bind_sort_records<int64_t>(m);
}

// ---- sampling ---------------------------------------------------------------------------------------------

constexpr int64_t kKeptBytes = 256 << 20;  // a thread's sampling memory above this is given back

template <class Index>
std::tuple<Out<int64_t, 1>, Out<int64_t, 1>, Out<int64_t, 1>, Out<int64_t, 1>, std::vector<int64_t>,
           std::vector<int64_t>>
sample_neighbors(In<int64_t, 1> indptr, In<Index, 1> indices, In<int64_t, 1> seeds,
                 const std::vector<int64_t>& fanouts, bool replace, uint64_t key, bool by_node) {
  thread_local NeighborSample<Index> sample;
  Huge<int64_t> node_ids, starts, locals, edge_ids;
  {
    nb::gil_scoped_release release;
    sample.draw(csc_view(indptr, indices), seeds.data(), seeds.size(), fanouts, replace, key, by_node);
    node_ids = copied(sample.node_ids(), sample.num_nodes());
    starts = copied(sample.indptr(), sample.num_dst() + 1);
    locals = copied(sample.indices(), sample.num_edges());
    edge_ids = copied(sample.edge_ids(), sample.num_edges());
  }
  const int64_t num_nodes = sample.num_nodes(), num_dst = sample.num_dst(), num_edges = sample.num_edges();
  const std::vector<int64_t> nodes_per_hop = sample.nodes_per_hop(), edges_per_hop = sample.edges_per_hop();
  if (sample.nbytes() > kKeptBytes) sample = NeighborSample<Index>();
  return {to_numpy(std::move(node_ids), num_nodes),
          to_numpy(std::move(starts), num_dst + 1),
          to_numpy(std::move(locals), num_edges),
          to_numpy(std::move(edge_ids), num_edges),
          nodes_per_hop,
          edges_per_hop};
}

template <class Index>
void bind_csc(nb::module_& m) {
  m.def(
      "first_bad_node",
      [](In<int64_t, 1> indptr, In<Index, 1> indices) {
        nb::gil_scoped_release release;
        return first_bad_node(csc_view(indptr, indices));
      },
      "indptr"_a, "indices"_a);
  m.def(
      "count_ids",
      [](In<Index, 1> ids, Out<int64_t, 1> counts) {
        nb::gil_scoped_release release;
        return count_ids(ids.data(), static_cast<int64_t>(ids.size()), counts.data(),
                         static_cast<int64_t>(counts.size()));
      },
      "ids"_a, "counts"_a);
  m.def("sample_neighbors", &sample_neighbors<Index>, "indptr"_a, "indices"_a, "seeds"_a, "fanouts"_a,
        "replace"_a, "key"_a, "by_node"_a,
        "node_ids, indptr, indices, edge_ids, new nodes per hop (seeds first), edges per hop");
}

void bind_graph(nb::module_& m) {
  bind_edge_list<int32_t>(m);
  bind_edge_list<int64_t>(m);
  bind_csc<int32_t>(m);
  bind_csc<int64_t>(m);
  m.def("mix", &mix, "key"_a, "value"_a);
  m.def(
      "mix_all",
      [](uint64_t key, In<int64_t, 1> values) {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < values.size(); ++i) key = mix(key, values.data()[i]);
        return key;
      },
      "key"_a, "values"_a);
}

}  // namespace

NB_MODULE(_kernels, m) {
  // A worker that ends with its interpreter still holding codecs and sources leaks nothing that matters.
  nb::set_leak_warnings(false);
  m.doc() = "CPU kernels of gnn_ibp; call them through gnn_ibp.ops.";
  bind_threads(m);
  bind_rows(m);
  bind_ibp2_codec(m);
  bind_ibp2_counts(m);
  bind_stored_rows(m);
  bind_model(m);
  bind_graph(m);
  bind_edge_records(m);
}
