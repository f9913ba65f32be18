// What the files beside this one bind: each a noun of the kernels.
#pragma once

#include <nanobind/nanobind.h>

namespace gnn_ibp {

void bind_codecs(nanobind::module_& m);
void bind_fit(nanobind::module_& m);
void bind_ibp2_counts(nanobind::module_& m);
void bind_rows(nanobind::module_& m);         // codecs must have been bound
void bind_stored_rows(nanobind::module_& m);  // rows must have been bound
void bind_model(nanobind::module_& m);
void bind_csc(nanobind::module_& m);
void bind_edge_records(nanobind::module_& m);
void bind_sample(nanobind::module_& m);

}  // namespace gnn_ibp
