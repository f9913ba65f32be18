// The only file that knows Python: arrays come as nanobind ndarrays, leave as raw pointers, the GIL released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "cpu/thread_pool.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace gnn_ibp;

namespace {

// ---- threads ----------------------------------------------------------------------------------------

void bind_threads(nb::module_& m) {
  m.def("set_num_threads", &set_num_threads, "num_threads"_a);
  m.def("num_threads", &num_threads);
}

}  // namespace

NB_MODULE(_kernels, m) {
  m.doc() = "CPU kernels of gnn_ibp; call them through gnn_ibp.ops.";
  bind_threads(m);
}
