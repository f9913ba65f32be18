// Masks for Invariant Bit Packing from a sample of rows. gnn_ibp/reference.py defines the results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gnn_ibp {

// In all of these: rows (num_rows, row_bytes); mask and bitval receive row_bytes bytes of little-endian
// words.

// The paper's rule: a bit is invariant where more than `percent` of 100 rows agree, for any chunk width.
void fit_threshold(const uint8_t* rows, int64_t num_rows, size_t row_bytes, int percent, uint8_t* mask,
                   uint8_t* bitval);

// The paper's sweep over thresholds 70, 75 ... 95.
void fit_sweep(const uint8_t* rows, int64_t num_rows, size_t row_bytes, int chunk_bits, uint8_t* mask,
               uint8_t* bitval);

// Each position by itself, its bits by conditional majority.
void fit_positions(const uint8_t* rows, int64_t num_rows, size_t row_bytes, int chunk_bits, uint8_t* mask,
                   uint8_t* bitval);

}  // namespace gnn_ibp
