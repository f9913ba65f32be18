// Columns of 64 bits out of rows, and their bit planes: a plane for each bit, with a bit for each row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpu/count_ones.h"
#include "cpu/little_endian.h"

namespace gnn_ibp {

// The columns that lie in one line of memory, each as consecutive words: a whole line is taken when it is
// there, later it would have left the caches.
class RowColumns {
 public:
  static constexpr size_t kBytes = 64;  // of a row
  static constexpr size_t kMost = kBytes / 8;

  explicit RowColumns(int64_t num_rows)
      : num_rows_(static_cast<size_t>(num_rows)), words_(kMost * num_rows_) {}

  // Takes the bytes from `at` on of rows (num_rows, row_bytes); where they end the words are 0.
  void load(const uint8_t* rows, size_t row_bytes, size_t at) {
    const size_t bytes = std::min(kBytes, row_bytes - at);
    uint8_t line[kBytes] = {};
    for (size_t i = 0; i < num_rows_; ++i) {
      const uint8_t* from = rows + i * row_bytes + at;
      // Rows are too far apart for the processor to see them coming.
      __builtin_prefetch(rows + std::min(i + kAhead, num_rows_ - 1) * row_bytes + at);
      if (bytes < kBytes) from = static_cast<uint8_t*>(std::memcpy(line, from, bytes));
      for (size_t c = 0; c < kMost; ++c) words_[c * num_rows_ + i] = load_le<uint64_t>(from + 8 * c);
    }
  }

  const uint64_t* column(size_t c) const { return words_.data() + c * num_rows_; }

 private:
  static constexpr size_t kAhead = 64;

  size_t num_rows_;
  std::vector<uint64_t> words_;
};

class BitPlanes {
 public:
  explicit BitPlanes(int64_t num_rows)
      : num_words_((static_cast<size_t>(num_rows) + 64 * kCountedWords - 1) / (64 * kCountedWords) *
                   kCountedWords),
        stride_(num_words_ + kTileWords),
        words_(64 * stride_) {}

  // Makes the planes of a column of num_rows words.
  void turn(const uint64_t* column, int64_t num_rows) {
    const size_t end = static_cast<size_t>(num_rows);
    for (size_t first = 0; first < end; first += kTileRows) {
      Tile tile;
      tile.load(column + first, std::min(kTileRows, end - first));
      tile.transpose();
      for (size_t bit = 0; bit < 64; ++bit)
        std::copy_n(tile.words[bit], kTileWords, &words_[bit * stride_ + first / 64]);
    }
  }

  // Bit i % 64 of word i / 64 is that of row i; bits beyond the rows are 0.
  const uint64_t* plane(size_t bit) const { return words_.data() + bit * stride_; }

  size_t num_words() const { return num_words_; }  // of a plane: a multiple of kCountedWords

 private:
  static constexpr size_t kTileWords = 8;
  static constexpr size_t kTileRows = 64 * kTileWords;

  // Squares of 64 x 64 bits, side by side so that the compiler's vectors go over them.
  struct Tile {
    uint64_t words[64][kTileWords];

    // words[r][w]: row 64 w + r.
    void load(const uint64_t* rows, size_t num_rows) {
      if (num_rows < kTileRows) std::memset(words, 0, sizeof(words));
      for (size_t i = 0; i < num_rows; ++i) words[i % 64][i / 64] = rows[i];
    }

    // words[r][w] bit c -> words[c][w] bit r, by swapping ever smaller blocks across the diagonal.
    void transpose() {
      swap_blocks<32>();
      swap_blocks<8>();
      swap_blocks<2>();
    }

    // The blocks of `half` bits, then those of half / 2, while the words are in registers.
    template <unsigned half>
    void swap_blocks() {
      constexpr unsigned quarter = half / 2;
      for (unsigned r = 0; r < 64; r += 2 * half) {
        uint64_t* __restrict a = words[r], * __restrict b = words[r + quarter];
        uint64_t* __restrict c = words[r + half], * __restrict d = words[r + half + quarter];
        for (size_t i = 0; i < quarter * kTileWords; ++i) {
          uint64_t p = a[i], q = b[i], s = c[i], t = d[i];
          swap_halves<half>(p, s);
          swap_halves<half>(q, t);
          swap_halves<quarter>(p, q);
          swap_halves<quarter>(s, t);
          a[i] = p, b[i] = q, c[i] = s, d[i] = t;
        }
      }
    }

    // Each upper block of `half` bits of `a` for the lower one below it in `b`.
    template <unsigned half>
    static void swap_halves(uint64_t& a, uint64_t& b) {
      constexpr uint64_t low = ~uint64_t{0} / ((uint64_t{1} << half) + 1);  // of every block
      const uint64_t swapped = (a >> half ^ b) & low;
      a ^= swapped << half;
      b ^= swapped;
    }
  };

  size_t num_words_, stride_;  // an odd number of lines, or all planes would fall into the same cache sets
  std::vector<uint64_t> words_;
};

}  // namespace gnn_ibp
