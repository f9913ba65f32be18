#include "cpu/fit.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

#include "cpu/little_endian.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

constexpr size_t kColumnBytes = 8;  // rows are looked at in columns of 64 bits

struct Rows {
  const uint8_t* bytes;
  int64_t num_rows;
  size_t row_bytes;

  const uint8_t* row(int64_t i) const { return bytes + static_cast<size_t>(i) * row_bytes; }
  int64_t num_columns() const { return static_cast<int64_t>((row_bytes + kColumnBytes - 1) / kColumnBytes); }
};

// matrix[r] bit c -> matrix[c] bit r, by swapping ever smaller blocks across the diagonal.
void transpose(uint64_t matrix[64]) {
  uint64_t low = 0x00000000FFFFFFFF;  // the columns of the left half of each block
  for (unsigned half = 32; half != 0; half >>= 1, low ^= low << half) {
    for (unsigned r = 0; r < 64; r = ((r | half) + 1) & ~half) {
      const uint64_t swapped = (matrix[r] >> half ^ matrix[r | half]) & low;
      matrix[r] ^= swapped << half;
      matrix[r | half] ^= swapped;
    }
  }
}

int64_t count_ones(const uint64_t* a, const uint64_t* b, size_t num_words) {
  int64_t ones = 0;
  for (size_t i = 0; i < num_words; ++i) ones += std::popcount(a[i] & b[i]);
  return ones;
}

// One column of the rows, turned: a plane per bit, with a bit per row.
class BitPlanes {
 public:
  BitPlanes(const Rows& rows, int64_t column)
      : num_words_(static_cast<size_t>((rows.num_rows + 63) / 64)), words_(64 * num_words_) {
    const size_t at = static_cast<size_t>(column) * kColumnBytes;
    const size_t bytes = std::min(kColumnBytes, rows.row_bytes - at);
    for (size_t w = 0; w < num_words_; ++w) {
      uint64_t block[64] = {};
      const int64_t first = static_cast<int64_t>(w) * 64;
      const int64_t count = std::min<int64_t>(64, rows.num_rows - first);
      for (int64_t r = 0; r < count; ++r) {
        uint8_t piece[kColumnBytes] = {};
        std::memcpy(piece, rows.row(first + r) + at, bytes);
        block[r] = load_le<uint64_t>(piece);
      }
      transpose(block);
      for (size_t bit = 0; bit < 64; ++bit) words_[bit * num_words_ + w] = block[bit];
    }
  }

  const uint64_t* plane(unsigned bit) const { return words_.data() + bit * num_words_; }
  size_t num_words() const { return num_words_; }

 private:
  size_t num_words_;
  std::vector<uint64_t> words_;
};

// Writes the low `bytes` bytes.
void store_low_bytes(uint8_t* at, uint64_t word, size_t bytes) {
  for (size_t b = 0; b < bytes; ++b) at[b] = static_cast<uint8_t>(word >> (8 * b));
}

std::vector<int64_t> ones_per_bit(const Rows& rows) {
  std::vector<int64_t> ones(static_cast<size_t>(rows.num_columns()) * 64);
  parallel_for(rows.num_columns(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const BitPlanes planes(rows, column);
      for (unsigned bit = 0; bit < 64; ++bit)
        ones[static_cast<size_t>(column) * 64 + bit] =
            count_ones(planes.plane(bit), planes.plane(bit), planes.num_words());
    }
  });
  return ones;
}

void apply_threshold(const std::vector<int64_t>& ones, const Rows& rows, int percent, uint8_t* mask,
                     uint8_t* bitval) {
  std::fill_n(mask, rows.row_bytes, uint8_t{0});
  std::fill_n(bitval, rows.row_bytes, uint8_t{0});
  for (size_t bit = 0; bit < 8 * rows.row_bytes; ++bit) {
    const uint8_t place = static_cast<uint8_t>(1u << bit % 8);
    const bool set = 100 * ones[bit] > percent * rows.num_rows;
    if (set) bitval[bit / 8] |= place;
    if (set || 100 * ones[bit] < (100 - percent) * rows.num_rows) mask[bit / 8] |= place;
  }
}

// Sum over the rows of max(0, bits saved by participating chunks - chunks): the paper's objective.
template <typename Word>
int64_t bits_saved(const Rows& rows, const uint8_t* mask, const uint8_t* bitval) {
  const size_t num_chunks = rows.row_bytes / sizeof(Word);
  std::vector<Word> masks(num_chunks), bitvals(num_chunks), counts(num_chunks);
  for (size_t j = 0; j < num_chunks; ++j) {
    masks[j] = load_le<Word>(mask + j * sizeof(Word));
    bitvals[j] = load_le<Word>(bitval + j * sizeof(Word));
    counts[j] = static_cast<Word>(std::popcount(masks[j]));
  }
  std::atomic<int64_t> total{0};
  parallel_for(rows.num_rows, 256, [&](int64_t begin, int64_t end) {
    int64_t sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      int64_t saved = -static_cast<int64_t>(num_chunks);
      const uint8_t* row = rows.row(i);
      for (size_t j = 0; j < num_chunks; ++j) {
        const Word chunk = load_le<Word>(row + j * sizeof(Word));
        saved += (chunk & masks[j]) == bitvals[j] ? counts[j] : 0;
      }
      sum += std::max<int64_t>(0, saved);
    }
    total += sum;
  });
  return total;
}

int64_t bits_saved(const Rows& rows, int chunk_bits, const uint8_t* mask, const uint8_t* bitval) {
  switch (chunk_bits) {
    case 8:
      return bits_saved<uint8_t>(rows, mask, bitval);
    case 16:
      return bits_saved<uint16_t>(rows, mask, bitval);
    case 32:
      return bits_saved<uint32_t>(rows, mask, bitval);
    default:
      return bits_saved<uint64_t>(rows, mask, bitval);
  }
}

struct Fitted {
  uint64_t mask = 0, bitval = 0;
};

// The position of `width` bits that begins at `first_bit` of the column.
Fitted fit_position(const BitPlanes& planes, unsigned first_bit, unsigned width, int64_t num_rows) {
  const size_t num_words = planes.num_words();
  std::vector<uint64_t> matching(num_words, ~uint64_t{0});
  if (num_rows % 64) matching.back() = ~uint64_t{0} >> (64 - num_rows % 64);

  Fitted chosen, best;
  int64_t num_matching = num_rows, length = 0, best_score = 0;
  const auto choose = [&](unsigned bit, uint64_t value, int64_t agree) {
    chosen.mask |= uint64_t{1} << bit;
    chosen.bitval |= value << bit;
    num_matching = agree;
    ++length;
    if (length * num_matching > best_score) {
      best_score = length * num_matching;
      best = chosen;
    }
  };

  // Until no longer prefix can be better than the best one.
  while (length < width && width * num_matching > best_score) {
    // Bits on which all agree come first, from the highest down, and change nothing for the others: one
    // count serves all of them and the bit that comes after them.
    int64_t most = -1;
    unsigned next_bit = 0;
    uint64_t next_value = 0;
    for (unsigned bit = width; bit-- > 0;) {
      if (chosen.mask >> bit & 1) continue;
      const int64_t ones = count_ones(planes.plane(first_bit + bit), matching.data(), num_words);
      const uint64_t value = ones > num_matching - ones;
      const int64_t agree = value ? ones : num_matching - ones;
      if (agree == num_matching) {
        choose(bit, value, agree);
      } else if (agree > most) {
        most = agree;
        next_bit = bit;
        next_value = value;
      }
    }
    if (most < 0) break;
    choose(next_bit, next_value, most);
    const uint64_t* plane = planes.plane(first_bit + next_bit);
    const uint64_t flip = next_value ? 0 : ~uint64_t{0};
    for (size_t w = 0; w < num_words; ++w) matching[w] &= plane[w] ^ flip;
  }
  return best;
}

}  // namespace

void fit_threshold(const uint8_t* bytes, int64_t num_rows, size_t row_bytes, int percent, uint8_t* mask,
                   uint8_t* bitval) {
  const Rows rows{bytes, num_rows, row_bytes};
  apply_threshold(ones_per_bit(rows), rows, percent, mask, bitval);
}

void fit_sweep(const uint8_t* bytes, int64_t num_rows, size_t row_bytes, int chunk_bits, uint8_t* mask,
               uint8_t* bitval) {
  const Rows rows{bytes, num_rows, row_bytes};
  const std::vector<int64_t> ones = ones_per_bit(rows);
  std::vector<uint8_t> masks(row_bytes), bitvals(row_bytes);
  int64_t most = -1;
  for (int percent = 70; percent < 100; percent += 5) {
    apply_threshold(ones, rows, percent, masks.data(), bitvals.data());
    const int64_t saved = bits_saved(rows, chunk_bits, masks.data(), bitvals.data());
    if (saved <= most) continue;
    most = saved;
    std::copy(masks.begin(), masks.end(), mask);
    std::copy(bitvals.begin(), bitvals.end(), bitval);
  }
}

void fit_positions(const uint8_t* bytes, int64_t num_rows, size_t row_bytes, int chunk_bits, uint8_t* mask,
                   uint8_t* bitval) {
  const Rows rows{bytes, num_rows, row_bytes};
  const unsigned width = static_cast<unsigned>(chunk_bits);
  parallel_for(rows.num_columns(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; ++column) {
      const size_t at = static_cast<size_t>(column) * kColumnBytes;
      const size_t bits = 8 * std::min(kColumnBytes, row_bytes - at);
      const BitPlanes planes(rows, column);
      for (unsigned bit = 0; bit < bits; bit += width) {
        const Fitted fitted = fit_position(planes, bit, width, num_rows);
        store_low_bytes(mask + at + bit / 8, fitted.mask, width / 8);
        store_low_bytes(bitval + at + bit / 8, fitted.bitval, width / 8);
      }
    }
  });
}

}  // namespace gnn_ibp
