// The fit of row format version 1, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings/arrays.h"
#include "cpu/fit.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

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

}  // namespace

void bind_fit(nb::module_& m) {
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
}

}  // namespace gnn_ibp
