// Row format version 2 for Python: its codec is made of a parameter block.
#include "bindings/ibp2_codec.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include "cpu/ibp2_codec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {

void bind_ibp2_codec(nb::module_& m) {
  using Block = nb::ndarray<const uint8_t, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "ibp2_codec",
      [](Block block, size_t row_bytes) {
        return make_ibp2_codec(block.data(), block.size(), row_bytes, simd_level(SimdLevel::kAvx512));
      },
      "block"_a.noconvert(), "row_bytes"_a);
}

}  // namespace gnn_ibp
