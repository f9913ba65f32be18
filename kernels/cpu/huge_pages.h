// Memory on huge pages where the system has them: random accesses to ordinary pages mostly wait for the TLB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace gnn_ibp {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using Huge = std::unique_ptr<T[], Free>;

// `size` values, not initialised.
template <class T>
Huge<T> make_huge(int64_t size) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t bytes = static_cast<size_t>(size) * sizeof(T);
  if (bytes < 2 * kPage) {
    void* memory = std::malloc(bytes ? bytes : 1);
    if (!memory) throw std::bad_alloc();
    return Huge<T>(static_cast<T*>(memory));
  }
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, rounded);
  if (!memory) throw std::bad_alloc();
  madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: without huge pages all works as before, slower
  return Huge<T>(static_cast<T*>(memory));
}

}  // namespace gnn_ibp
