// Row formats with their parameters, for Python; and the levels of vector instructions there are.
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "cpu/ibp2_codec.h"
#include "cpu/ibp_codec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {

void bind_codecs(nb::module_& m) {
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

  m.def(
      "ibp2_codec",
      [](In<uint8_t, 1> block, size_t row_bytes) {
        return make_ibp2_codec(block.data(), block.size(), row_bytes, simd_level(SimdLevel::kAvx512));
      },
      "block"_a.noconvert(), "row_bytes"_a);
}

}  // namespace gnn_ibp
