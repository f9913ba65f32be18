#include "cpu/edge_draw.h"

#include <array>
#include <utility>

#include "random.h"

namespace gnn_ibp {
namespace {

constexpr int kFew = 16;

// `draw_distinct` with its loops unrolled: each draw is compared with all earlier ones without a branch,
// because whether it is new cannot be predicted. Only for fanout < degree.
template <int kFanout>
void draw_few(EdgeRange range, uint64_t key, int64_t* edges) {
  int64_t drawn[kFanout + 1];
#pragma GCC unroll 16
  for (int k = 0; k < kFanout; ++k) {
    const int64_t last = range.degree - kFanout + k;
    const int64_t place = bounded(mix(key, k), last + 1);
    bool taken = false;
#pragma GCC unroll 16
    for (int i = 0; i < k; ++i) taken |= drawn[i] == place;
    drawn[k] = taken ? last : place;
    edges[k] = range.begin + drawn[k];
  }
}

template <int... kFanouts>
constexpr auto few_table(std::integer_sequence<int, kFanouts...>) {
  return std::array{&draw_few<kFanouts>...};
}

constexpr auto kDrawFew = few_table(std::make_integer_sequence<int, kFew + 1>());

}  // namespace

EdgeDraw::EdgeDraw(int64_t fanout, bool replace, uint64_t key)
    : fanout_(fanout),
      replace_(replace),
      key_(key),
      draw_few_(0 <= fanout && fanout <= kFew ? kDrawFew[fanout] : nullptr) {}

void EdgeDraw::draw(const int64_t* nodes, const EdgeRange* ranges, int64_t num_nodes, int64_t* edges,
                    LocalIds<uint64_t>& taken) const {
  for (int64_t i = 0; i < num_nodes; ++i) {
    const EdgeRange range = ranges[i];
    const int64_t num_drawn = count(range.degree);
    if (fanout_ < 0 || (!replace_ && num_drawn == range.degree)) {
      for (int64_t k = 0; k < num_drawn; ++k) edges[k] = range.begin + k;
    } else if (replace_) {
      draw_replaced(range, mix(key_, nodes[i]), edges);
    } else if (draw_few_) {
      draw_few_(range, mix(key_, nodes[i]), edges);
    } else {
      draw_distinct(range, mix(key_, nodes[i]), edges, taken);
    }
    edges += num_drawn;
  }
}

void EdgeDraw::draw_replaced(EdgeRange range, uint64_t key, int64_t* edges) const {
  if (range.degree == 0) return;
  for (int64_t k = 0; k < fanout_; ++k) edges[k] = range.begin + bounded(mix(key, k), range.degree);
}

// Floyd's draw without replacement (Bentley, Floyd 1987): fanout < degree distinct edges, one number each.
void EdgeDraw::draw_distinct(EdgeRange range, uint64_t key, int64_t* edges, LocalIds<uint64_t>& taken) const {
  taken.clear();
  taken.reserve(fanout_, nullptr, 0);
  for (int64_t k = 0; k < fanout_; ++k) {
    const int64_t last = range.degree - fanout_ + k;
    int64_t place = bounded(mix(key, k), last + 1);
    if (taken.insert(place, k) != k) {
      place = last;
      taken.insert(place, k);
    }
    edges[k] = range.begin + place;
  }
}

}  // namespace gnn_ibp
