// What the fit of row format version 2 counts, for Python: chunks come as arrays of their words.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <bit>
#include <optional>
#include <utility>

#include "bindings/arrays.h"
#include "cpu/ibp2_counts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

template <typename Word>
void bind_words(nb::module_& m) {
  m.def(
      "count_tops",
      [](In<Word, 2> chunks, unsigned shift, Out<uint32_t, 2> counts) {
        const unsigned bits = static_cast<unsigned>(std::bit_width(counts.shape(1))) - 1;
        require(counts.shape(0) == chunks.shape(1) && counts.shape(1) == size_t{1} << bits && bits >= 1 &&
                    bits <= 16 && shift + bits <= 8 * sizeof(Word),
                "counts does not fit");
        nb::gil_scoped_release release;
        count_tops<Word>(reinterpret_cast<const uint8_t*>(chunks.data()),
                         static_cast<int64_t>(chunks.shape(0)), chunks.shape(1), shift, bits, counts.data());
      },
      "chunks"_a.noconvert(), "shift"_a, "counts"_a.noconvert());
  m.def(
      "commonest",
      [](In<Word, 1> chunks, int64_t least) -> std::optional<std::pair<Word, int64_t>> {
        nb::gil_scoped_release release;
        const auto found = commonest<Word>(reinterpret_cast<const uint8_t*>(chunks.data()),
                                           static_cast<int64_t>(chunks.size()), least);
        if (!found) return {};
        return std::pair{found->value, found->count};
      },
      "chunks"_a.noconvert(), "least"_a, "the most frequent value and its count, where more than `least`");
}

}  // namespace

void bind_ibp2_counts(nb::module_& m) {
  bind_words<uint8_t>(m);
  bind_words<uint16_t>(m);
  bind_words<uint32_t>(m);
  bind_words<uint64_t>(m);
}

}  // namespace gnn_ibp
