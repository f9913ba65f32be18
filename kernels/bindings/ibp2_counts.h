#pragma once

#include <nanobind/nanobind.h>

namespace gnn_ibp {

// What the fit of row format version 2 counts, for Python.
void bind_ibp2_counts(nanobind::module_& m);

}  // namespace gnn_ibp
