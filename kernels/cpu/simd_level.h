// Which vector instructions the row codecs use: the best this processor has, or what GNN_IBP_SIMD names.
#pragma once

#include <vector>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define GNN_IBP_X86 1
#endif
#if defined(__aarch64__) && !defined(__AARCH64EB__) && (defined(__GNUC__) || defined(__clang__))
#define GNN_IBP_NEON 1
#endif

namespace gnn_ibp {

enum class SimdLevel {
  kPortable,  // plain C++, any processor
  kBmi2,      // pdep and pext
  kAvx2,      // 32 bytes at a time
  kAvx512,    // 64 bytes at a time; needs BW, VL, VBMI and VBMI2
  kNeon,      // 16 bytes at a time, on ARM; version 2 of the row format alone
};

const char* name_of(SimdLevel level);

// Those this processor can run, ascending; kPortable is always among them.
std::vector<SimdLevel> supported_simd_levels();

// The level of codecs made now: that of the environment variable GNN_IBP_SIMD, or without it the highest
// supported one that is fast, where decoding takes pdep at the levels below `without_pdep`. Throws
// std::invalid_argument where the variable names no supported level.
SimdLevel simd_level(SimdLevel without_pdep);

// Whether pdep and pext take a few cycles. AMD's processors before Zen 3 run them in microcode, bit by bit.
bool has_fast_pdep();

}  // namespace gnn_ibp
