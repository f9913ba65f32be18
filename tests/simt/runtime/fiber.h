// A fiber: a stack, and the place on it where it goes on when it is switched to.
#pragma once

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "sanitizers.h"

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_SWITCH_BY_HAND
extern "C" void simt_switch(void** save_to, void* go_on_at);
asm(R"(.text
.globl simt_switch
.hidden simt_switch
.type simt_switch,@function
simt_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp,(%rdi)
 movq %rsi,%rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
.size simt_switch,.-simt_switch
)");
#else
#include <ucontext.h>
#endif

namespace simt {

constexpr size_t STACK_BYTES = 256 << 10, STACK_GUARD_BYTES = 4096;
constexpr size_t NUM_SAVED = 6;  // registers that simt_switch pops

struct Fiber {
  const void* stack = nullptr;  // of the process's own thread, known to AddressSanitizer alone
  size_t stack_bytes = 0;
  void* asan_frame = nullptr;
  void* tsan = nullptr;
#ifdef SIMT_SWITCH_BY_HAND
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

// Makes `fiber` start in `entry`, which must not return. `number` is of the CUDA thread it stands for.
inline void prepare(Fiber& fiber, void (*entry)(), unsigned number) {
  if (!fiber.stack) {
    void* memory = mmap(nullptr, STACK_BYTES + STACK_GUARD_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      perror("mmap of a fiber's stack");
      abort();
    }
    mprotect(memory, STACK_GUARD_BYTES, PROT_NONE);
    fiber.stack = static_cast<char*>(memory) + STACK_GUARD_BYTES;
    fiber.stack_bytes = STACK_BYTES;
  }
  char* stack = static_cast<char*>(const_cast<void*>(fiber.stack));
  allow(stack, STACK_BYTES);
  fiber.asan_frame = nullptr;
#ifdef SIMT_TSAN
  if (!fiber.tsan) {
    char name[32];
    snprintf(name, sizeof name, "cuda thread %u", number);
    fiber.tsan = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fiber.tsan, name);
  }
#endif
#ifdef SIMT_SWITCH_BY_HAND
  // The tops of the stacks are spread over the sets of the L1 cache. 72: aligned as after a call.
  void** top = reinterpret_cast<void**>(stack + STACK_BYTES - 72 - size_t{number} * 448 % 16384);
  top[0] = nullptr;
  *--top = reinterpret_cast<void*>(entry);
  for (size_t i = 0; i < NUM_SAVED; i++) *--top = nullptr;
  fiber.stack_pointer = top;
#else
  (void)number;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = STACK_BYTES;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
#endif
}

// The first thing a fiber does; `previous` is the one that ran before the very first switch.
inline void enter([[maybe_unused]] Fiber& previous) {
#ifdef SIMT_ASAN
  const void* stack;
  size_t stack_bytes;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &stack_bytes);
  if (!previous.stack) {
    previous.stack = stack;
    previous.stack_bytes = stack_bytes;
  }
#endif
}

inline void switch_fiber(Fiber& from, Fiber& to) {
#ifdef SIMT_ASAN
  __sanitizer_start_switch_fiber(&from.asan_frame, to.stack, to.stack_bytes);
#endif
#ifdef SIMT_TSAN
  __tsan_switch_to_fiber(to.tsan, 1);  // 1: a mere switch orders no memory
#endif
#ifdef SIMT_SWITCH_BY_HAND
  simt_switch(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
#ifdef SIMT_ASAN
  const void* stack;
  size_t stack_bytes;
  __sanitizer_finish_switch_fiber(from.asan_frame, &stack, &stack_bytes);
#endif
}

}  // namespace simt
