#pragma once

#include <nanobind/nanobind.h>

namespace gnn_ibp {

// Row format version 2 for Python. RowCodec must have been bound.
void bind_ibp2_codec(nanobind::module_& m);

}  // namespace gnn_ibp
