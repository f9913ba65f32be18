// Threads that share the iterations of a loop. Started at the first use, and anew in a forked child.
#pragma once

#include <cstdint>
#include <functional>

namespace gnn_ibp {

// Calls body(begin, end) on consecutive pieces of [0, n), each at most `grain` long, on the calling thread
// and the threads of the compute pool. Returns when all are done; the first exception is thrown again here.
// Safe to call from many threads at once and inside another body.
using RangeBody = std::function<void(int64_t begin, int64_t end)>;
void parallel_for(int64_t n, int64_t grain, const RangeBody& body);

// The same on a pool of `io_threads()` threads that are meant to wait for the disk.
void parallel_for_io(int64_t n, int64_t grain, const RangeBody& body);

// Threads of the compute pool, the caller included; 1 runs everything on the caller. Default: the processors
// this process may run on. Changing it while kernels run affects those that start afterwards.
void set_num_threads(int num_threads);
int num_threads();
int io_threads();

}  // namespace gnn_ibp
