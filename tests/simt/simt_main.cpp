// Runs the launches that sanitized_module.py asks for on standard input: a sanitizer must own its process,
// and every buffer here is a heap block of exactly its size. The process ends at the first failure.
//
//   request  := kernel name (64 bytes), grid, block (uint32), options (5 x int32), dynamic shared bytes,
//               number of arguments (uint64), arguments
//   argument := kind, bytes, number of ranges (uint64), ranges (begin, end: uint64 each), bytes of kind 0, 1
//   answer   := "+", the buffers' bytes, in order
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
int simt_launch(void (*)(void**), unsigned grid, unsigned block, size_t dynamic_bytes, void** arguments);
const char* simt_error();
void simt_options(const int*);
#ifdef SIMT_ASAN
void __asan_poison_memory_region(const volatile void*, size_t);
void __asan_unpoison_memory_region(const volatile void*, size_t);
#endif
#ifdef SIMT_MSAN
intptr_t __msan_test_shadow(const volatile void*, size_t);
void __msan_poison(const volatile void*, size_t);
#endif
}

namespace {

enum Kind : uint64_t { SCALAR, BUFFER, UNDEFINED, NULL_POINTER, SAME_AS };  // SAME_AS: bytes is an argument
enum Exit { BAD_REQUEST = 2, LAUNCH_FAILED = 3, UNDEFINED_RESULT = 4 };

struct Argument {
  uint64_t kind, bytes, num_ranges;
  void* value = nullptr;  // of a scalar its bytes, of a pointer the buffer
  std::vector<uint64_t> ranges;
};

[[noreturn]] void quit(Exit code, const std::string& why) {
  fprintf(stderr, "simt: %s\n", why.c_str());
  exit(code);
}

void receive(void* to, size_t bytes) {
  if (bytes && fread(to, 1, bytes, stdin) != bytes) quit(BAD_REQUEST, "the request is cut short");
}

Argument receive_argument(int fill, const std::vector<Argument>& earlier) {
  Argument argument;
  receive(&argument.kind, 3 * sizeof(uint64_t));
  argument.ranges.resize(2 * argument.num_ranges);
  receive(argument.ranges.data(), argument.ranges.size() * sizeof(uint64_t));
  if (argument.kind == NULL_POINTER) return argument;
  if (argument.kind == SAME_AS) {
    argument.value = earlier.at(argument.bytes).value;
    return argument;
  }
  const size_t bytes = argument.bytes;
  if (posix_memalign(&argument.value, 256, bytes ? bytes : 1)) quit(BAD_REQUEST, "out of memory");
  if (argument.kind == UNDEFINED) {
    memset(argument.value, fill, bytes);
#ifdef SIMT_MSAN
    __msan_poison(argument.value, bytes);
#endif
  } else {
    receive(argument.value, bytes);
  }
#ifdef SIMT_ASAN
  char* buffer = static_cast<char*>(argument.value);
  if (argument.num_ranges) __asan_poison_memory_region(buffer, bytes);
  for (size_t i = 0; i < argument.ranges.size(); i += 2) {
    __asan_unpoison_memory_region(buffer + argument.ranges[i], argument.ranges[i + 1] - argument.ranges[i]);
  }
#endif
  return argument;
}

void send_buffer(const Argument& argument, size_t number) {
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(argument.value, argument.bytes);
#endif
#ifdef SIMT_MSAN
  const intptr_t at = __msan_test_shadow(argument.value, argument.bytes);
  if (at >= 0) {
    quit(UNDEFINED_RESULT,
         "argument " + std::to_string(number) + " holds undefined bits from byte " + std::to_string(at));
  }
#endif
  (void)number;
  fwrite(argument.value, 1, argument.bytes, stdout);
}

void check_signature(const char* kernel, const std::vector<Argument>& arguments) {
  const auto sizes_of =
      (size_t (*)(int64_t*))dlsym(RTLD_DEFAULT, (std::string("simt_arguments_") + kernel).c_str());
  int64_t sizes[64];
  const size_t count = sizes_of(sizes);
  if (count != arguments.size()) {
    quit(LAUNCH_FAILED, std::string(kernel) + " takes " + std::to_string(count) + " arguments, " +
                            std::to_string(arguments.size()) + " were given");
  }
  for (size_t i = 0; i < count; i++) {
    const bool fits = arguments[i].kind == SCALAR ? sizes[i] == (int64_t)arguments[i].bytes : sizes[i] < 0;
    if (!fits) {
      quit(LAUNCH_FAILED, "argument " + std::to_string(i) + " of " + kernel + " is of another type or width");
    }
  }
}

bool is_buffer(const Argument& argument) { return argument.kind == BUFFER || argument.kind == UNDEFINED; }

void run_launch(const char* kernel) {
  uint32_t grid_and_block[2];
  int32_t options[5];
  uint64_t dynamic_bytes, num_arguments;
  receive(grid_and_block, sizeof grid_and_block);
  receive(options, sizeof options);
  receive(&dynamic_bytes, sizeof dynamic_bytes);
  receive(&num_arguments, sizeof num_arguments);
  std::vector<Argument> arguments;
  for (uint64_t i = 0; i < num_arguments; i++) arguments.push_back(receive_argument(options[2], arguments));

  const auto call = (void (*)(void**))dlsym(RTLD_DEFAULT, (std::string("simt_call_") + kernel).c_str());
  if (!call) quit(BAD_REQUEST, std::string("there is no kernel ") + kernel);
  check_signature(kernel, arguments);
  std::vector<void*> values;
  for (Argument& argument : arguments) {
    values.push_back(argument.kind == SCALAR ? argument.value : static_cast<void*>(&argument.value));
  }
  simt_options(options);
  if (simt_launch(call, grid_and_block[0], grid_and_block[1], dynamic_bytes, values.data())) {
    quit(LAUNCH_FAILED, simt_error());
  }
  fputc('+', stdout);
  for (size_t i = 0; i < arguments.size(); i++) {
    if (is_buffer(arguments[i])) send_buffer(arguments[i], i);
  }
  fflush(stdout);
  for (const Argument& argument : arguments) {
    if (argument.kind != SAME_AS) free(argument.value);
  }
}

}  // namespace

int main() {
  char kernel[64];
  while (fread(kernel, 1, sizeof kernel, stdin) == sizeof kernel) run_launch(kernel);
}
