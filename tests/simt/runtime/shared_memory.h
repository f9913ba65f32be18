// The shared memory of a block: variables apart from each other in one arena, with forbidden bytes between.
#pragma once

#include <vector>

#include "block.h"

namespace simt {

constexpr size_t STATIC_SHARED_BYTES = 48 << 10, MAX_SHARED_BYTES = 228 << 10;
constexpr size_t GAP_BYTES = 64, ARENA_BYTES = MAX_SHARED_BYTES + 64 * GAP_BYTES;

struct SharedVariable {
  size_t offset, bytes;
};
alignas(128) inline char arenas[NUM_SETS][ARENA_BYTES];
inline char* arena = arenas[0];
inline size_t arena_used, static_shared_bytes, dynamic_offset;
inline std::vector<SharedVariable> variables;
inline std::vector<int*> variable_ids;  // where the kernel keeps the variables' numbers

inline void fill_variable(const SharedVariable& variable) {
  // Not memset: ThreadSanitizer would take it for an access by the running CUDA thread.
  volatile char* bytes = arena + variable.offset;
  for (size_t i = 0; i < variable.bytes; i++) bytes[i] = static_cast<char>(options.fill);
  undefine(arena + variable.offset, variable.bytes);
}

inline size_t place_variable(size_t bytes, size_t align) {
  const size_t offset = (arena_used + align - 1) / align * align;
  if (offset + bytes + GAP_BYTES > ARENA_BYTES) fail("out of shared memory");
  arena_used = offset + bytes + GAP_BYTES;
  allow(arena + offset, bytes);
  variables.push_back({offset, bytes});
  fill_variable(variables.back());
  return offset;
}

// A launch begins: nothing is placed but its dynamic shared memory.
inline void clear_shared(size_t dynamic_bytes) {
  for (int* id : variable_ids) *id = -1;
  variable_ids.clear();
  variables.clear();
  arena_used = GAP_BYTES;
  static_shared_bytes = 0;
  for (char* set : arenas) forbid(set, ARENA_BYTES);
  dynamic_offset = place_variable(dynamic_bytes, 128);
}

// A block begins: what the one before left in shared memory is gone.
inline void refill_shared() {
  for (const SharedVariable& variable : variables) {
    allow(arena + variable.offset, variable.bytes);
    fill_variable(variable);
  }
}

void* shared_variable(int* id, size_t bytes, size_t align, const char* name) {
  if (*id < 0) {
    static_shared_bytes += bytes;
    if (static_shared_bytes > STATIC_SHARED_BYTES) fail("static shared memory over 48 KiB at %s", name);
    place_variable(bytes, align < 16 ? 16 : align);
    *id = static_cast<int>(variables.size()) - 1;
    variable_ids.push_back(id);
  }
  return arena + variables[static_cast<size_t>(*id)].offset;
}

void* dynamic_shared() { return arena + dynamic_offset; }

}  // namespace simt
