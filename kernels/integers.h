// Integers of a fixed width, for the host compiler and for NVRTC, which has no standard headers.
#pragma once

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;  // the type that atomicAdd takes
#else
#include <cstddef>
#include <cstdint>
#endif
