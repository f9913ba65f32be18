#include "cpu/simd_level.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gnn_ibp {
namespace {

constexpr SimdLevel kLevels[] = {SimdLevel::kPortable, SimdLevel::kBmi2, SimdLevel::kAvx2, SimdLevel::kAvx512,
                                 SimdLevel::kNeon};

// A test runs that level's code without the processor: see ibp_avx512.cpp.
#ifdef GNN_IBP_EMULATED_AVX512
constexpr bool kEmulatedAvx512 = true;
#else
constexpr bool kEmulatedAvx512 = false;
#endif

bool is_supported(SimdLevel level) {
  switch (level) {
    case SimdLevel::kPortable:
      return true;
#ifdef GNN_IBP_X86
    case SimdLevel::kBmi2:
      return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    case SimdLevel::kAvx2:
      return __builtin_cpu_supports("avx2") && is_supported(SimdLevel::kBmi2);
    case SimdLevel::kAvx512:
      return is_supported(SimdLevel::kAvx2) &&
             (kEmulatedAvx512 ||
              (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2")));
#endif
#ifdef GNN_IBP_NEON
    case SimdLevel::kNeon:
      return true;
#endif
    default:
      return false;
  }
}

std::string names_of(const std::vector<SimdLevel>& levels) {
  std::string names;
  for (const SimdLevel level : levels) names += (names.empty() ? "" : ", ") + std::string(name_of(level));
  return names;
}

SimdLevel named_level(const std::string& name) {
  const std::vector<SimdLevel> supported = supported_simd_levels();
  for (const SimdLevel level : supported)
    if (name == name_of(level)) return level;
  throw std::invalid_argument("GNN_IBP_SIMD is \"" + name + "\", which this processor does not run; want " +
                              names_of(supported) + ", or no such variable");
}

}  // namespace

const char* name_of(SimdLevel level) {
  switch (level) {
    case SimdLevel::kBmi2:
      return "bmi2";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
    case SimdLevel::kNeon:
      return "neon";
    default:
      return "portable";
  }
}

std::vector<SimdLevel> supported_simd_levels() {
#ifdef GNN_IBP_X86
  __builtin_cpu_init();
#endif
  std::vector<SimdLevel> supported;
  for (const SimdLevel level : kLevels)
    if (is_supported(level)) supported.push_back(level);
  return supported;
}

SimdLevel simd_level(SimdLevel without_pdep) {
  if (const char* name = std::getenv("GNN_IBP_SIMD")) return named_level(name);
  const SimdLevel best = supported_simd_levels().back();
  return best < without_pdep && !has_fast_pdep() ? SimdLevel::kPortable : best;
}

bool has_fast_pdep() {
#ifdef GNN_IBP_X86
  __builtin_cpu_init();
  return __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("amdfam15h") && !__builtin_cpu_is("amdfam17h");
#else
  return false;
#endif
}

}  // namespace gnn_ibp
