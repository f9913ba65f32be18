// The module: with bindings/ all that knows Python. Arrays come as nanobind ndarrays, leave as raw pointers,
// the GIL released.
#include "bindings/bindings.h"

#include "cpu/thread_pool.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gnn_ibp;

NB_MODULE(_kernels, m) {
  // A worker that ends with its interpreter still holding codecs and sources leaks nothing that matters.
  nb::set_leak_warnings(false);
  m.doc() = "CPU kernels of gnn_ibp; call them through gnn_ibp.ops.";
  m.def("set_num_threads", &set_num_threads, "num_threads"_a);
  m.def("num_threads", &num_threads);
  bind_codecs(m);
  bind_fit(m);
  bind_ibp2_counts(m);
  bind_rows(m);
  bind_stored_rows(m);
  bind_model(m);
  bind_csc(m);
  bind_sample(m);
  bind_edge_records(m);
}
