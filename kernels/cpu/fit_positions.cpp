// Masks by conditional majority: bits are counted in bit planes, and only where the count can matter.
#include <algorithm>
#include <vector>

#include "cpu/bit_planes.h"
#include "cpu/count_ones.h"
#include "cpu/fit.h"
#include "cpu/thread_pool.h"

namespace gnn_ibp {
namespace {

struct Fitted {
  uint64_t mask = 0, bitval = 0;
};

// The bits of one position, chosen one by one. What a bit's rows agreed on before is a bound on what they
// agree on now, since rows only drop out: a bit is counted again only where its bound is the highest.
class Position {
 public:
  // `width` bits from `first_bit` on; ones: those of each bit.
  Position(const BitPlanes& planes, size_t first_bit, unsigned width, const int64_t* ones, int64_t num_rows)
      : planes_(planes),
        first_bit_(first_bit),
        width_(width),
        matching_(planes.num_words(), ~uint64_t{0}),
        num_matching_(num_rows) {
    for (unsigned bit = 0; bit < width; ++bit) note_ones(bit, ones[bit]);
  }

  Fitted fit() {
    Fitted best;
    int64_t best_score = 0;
    for (int64_t length = 0; length < width_;) {
      const unsigned bit = most_agreed();
      if (width_ * agree_[bit] <= best_score) break;  // no longer prefix can be better
      if (!(counted_ >> bit & 1)) {
        note_ones(bit, count_ones(planes_.plane(first_bit_ + bit), matching_.data(), matching_.size()));
        continue;
      }
      choose(bit);
      ++length;
      if (length * num_matching_ <= best_score) continue;
      best_score = length * num_matching_;
      best = chosen_;
    }
    return best;
  }

 private:
  void note_ones(unsigned bit, int64_t ones) {
    const uint64_t place = uint64_t{1} << bit;
    const bool value = ones > num_matching_ - ones;
    agree_[bit] = value ? ones : num_matching_ - ones;
    values_ = value ? values_ | place : values_ & ~place;
    counted_ |= place;
  }

  // The bit with the highest bound among those not chosen, the highest of equal ones.
  unsigned most_agreed() const {
    int64_t most = -1;
    unsigned most_bit = 0;
    for (unsigned bit = width_; bit-- > 0;) {
      if (agree_[bit] <= most || chosen_.mask >> bit & 1) continue;
      most = agree_[bit];
      most_bit = bit;
    }
    return most_bit;
  }

  void choose(unsigned bit) {
    const uint64_t place = uint64_t{1} << bit;
    chosen_.mask |= place;
    chosen_.bitval |= values_ & place;
    if (agree_[bit] == num_matching_) return;
    num_matching_ = agree_[bit];
    counted_ = 0;
    const uint64_t* plane = planes_.plane(first_bit_ + bit);
    const uint64_t flip = values_ & place ? 0 : ~uint64_t{0};
    for (size_t w = 0; w < matching_.size(); ++w) matching_[w] &= plane[w] ^ flip;
  }

  const BitPlanes& planes_;
  const size_t first_bit_;
  const unsigned width_;
  std::vector<uint64_t> matching_;  // rows; bits beyond them do not matter, the planes have zeros there
  int64_t num_matching_;
  Fitted chosen_;
  int64_t agree_[64];                  // rows that agree on the bit, or more where it is not counted
  uint64_t values_ = 0, counted_ = 0;  // what they agree on, and whether that is so for the rows matching now
};

// Writes the low `bytes` bytes.
void store_low_bytes(uint8_t* at, uint64_t word, size_t bytes) {
  for (size_t b = 0; b < bytes; ++b) at[b] = static_cast<uint8_t>(word >> (8 * b));
}

}  // namespace

void fit_positions(const uint8_t* rows, int64_t num_rows, size_t row_bytes,
                   const std::vector<int>& chunk_bits, uint8_t* masks, uint8_t* bitvals, int64_t* ones) {
  // Bytes at..at + 8 of the rows.
  const auto fit_column = [&](const BitPlanes& planes, size_t at) {
    const size_t bits = 8 * std::min<size_t>(8, row_bytes - at);
    for (size_t bit = 0; bit < bits; ++bit)
      ones[8 * at + bit] = count_ones(planes.plane(bit), planes.plane(bit), planes.num_words());
    for (size_t k = 0; k < chunk_bits.size(); ++k) {
      const unsigned width = static_cast<unsigned>(chunk_bits[k]);
      for (size_t bit = 0; bit < bits; bit += width) {
        const Fitted fitted = Position(planes, bit, width, ones + 8 * at + bit, num_rows).fit();
        store_low_bytes(masks + k * row_bytes + at + bit / 8, fitted.mask, width / 8);
        store_low_bytes(bitvals + k * row_bytes + at + bit / 8, fitted.bitval, width / 8);
      }
    }
  };
  const int64_t num_lines = static_cast<int64_t>((row_bytes + RowColumns::kBytes - 1) / RowColumns::kBytes);
  const int64_t lines_per_thread = (num_lines + num_threads() - 1) / num_threads();
  parallel_for(num_lines, std::max<int64_t>(1, lines_per_thread), [&](int64_t begin, int64_t end) {
    RowColumns columns(num_rows);
    BitPlanes planes(num_rows);
    const size_t last = std::min(row_bytes, static_cast<size_t>(end) * RowColumns::kBytes);
    for (size_t at = static_cast<size_t>(begin) * RowColumns::kBytes; at < last; at += 8) {
      const size_t column = at % RowColumns::kBytes / 8;
      if (column == 0) columns.load(rows, row_bytes, at);
      planes.turn(columns.column(column), num_rows);
      fit_column(planes, at);
    }
  });
}

}  // namespace gnn_ibp
