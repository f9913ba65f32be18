// What the harness tells the sanitizers; each function is empty where its sanitizer is not in the build.
// The harness is compiled without -fsanitize=address and thread, with SIMT_ASAN and SIMT_TSAN in place.
#pragma once

#include <cstddef>

extern "C" {
#ifdef SIMT_ASAN
void __sanitizer_start_switch_fiber(void**, const void*, size_t);
void __sanitizer_finish_switch_fiber(void*, const void**, size_t*);
void __asan_poison_memory_region(const volatile void*, size_t);
void __asan_unpoison_memory_region(const volatile void*, size_t);
void* __asan_region_is_poisoned(void*, size_t);
#endif
#ifdef SIMT_TSAN
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void*, unsigned);
void __tsan_set_fiber_name(void*, const char*);
void __tsan_acquire(void*);
void __tsan_release(void*);
#endif
#ifdef SIMT_MSAN
void __msan_poison(const volatile void*, size_t);
#endif
}

namespace simt {

// AddressSanitizer: bytes that may not, or may again, be touched.
inline void forbid([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#ifdef SIMT_ASAN
  __asan_poison_memory_region(at, bytes);
#endif
}
inline void allow([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(at, bytes);
#endif
}
inline bool is_forbidden([[maybe_unused]] const void* at, [[maybe_unused]] size_t bytes) {
#ifdef SIMT_ASAN
  return bytes && __asan_region_is_poisoned(const_cast<void*>(at), bytes);
#else
  return false;
#endif
}

// MemorySanitizer: bytes whose value may not be used until they are written.
inline void undefine([[maybe_unused]] void* at, [[maybe_unused]] size_t bytes) {
#ifdef SIMT_MSAN
  __msan_poison(at, bytes);
#endif
}

// ThreadSanitizer: whatever happened before a release of a mark happens before a later acquire of it.
struct Mark {
  char address;
};
inline void release([[maybe_unused]] Mark& mark) {
#ifdef SIMT_TSAN
  __tsan_release(&mark);
#endif
}
inline void acquire([[maybe_unused]] Mark& mark) {
#ifdef SIMT_TSAN
  __tsan_acquire(&mark);
#endif
}

}  // namespace simt
