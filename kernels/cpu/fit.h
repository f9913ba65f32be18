// Masks for Invariant Bit Packing from a sample of rows. gnn_ibp/reference.py defines the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gnn_ibp {

// In all of these: rows (num_rows, row_bytes); mask and bitval receive row_bytes bytes of little-endian
// words; ones (8 * row_bytes) are the rows with a one, for each bit.

// Each position by itself, its bits by conditional majority, for each of several chunk widths, which may be
// none: masks and bitvals (widths, row_bytes). Counts the ones besides.
void fit_positions(const uint8_t* rows, int64_t num_rows, size_t row_bytes,
                   const std::vector<int>& chunk_bits, uint8_t* masks, uint8_t* bitvals, int64_t* ones);

// The paper's rule: a bit is invariant where more than `percent` of 100 rows agree, for any chunk width.
void fit_threshold(const int64_t* ones, int64_t num_rows, size_t row_bytes, int percent, uint8_t* mask,
                   uint8_t* bitval);

// The paper's sweep over thresholds 70, 75 ... 95.
void fit_sweep(const uint8_t* rows, int64_t num_rows, size_t row_bytes, const int64_t* ones, int chunk_bits,
               uint8_t* mask, uint8_t* bitval);

}  // namespace gnn_ibp
