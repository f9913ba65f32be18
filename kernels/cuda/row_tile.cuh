// Up to 32 ids of a warp, looked up together: a lane each.
//
//   ids  -> in range?  -> slot in the first source, else in the second -> place in the slab
//             | no                                  | in neither            | wrong
//           bad_at                         list of missing ids         damaged_at
//
// What is to be decoded is packed into places[0], places[1], ..., in shared memory. A warp does so with one
// tile of the ids after the other, as long as there are any.
#pragma once

#include "cuda/row_source.cuh"
#include "cuda/warp.cuh"

namespace gnn_ibp {

constexpr unsigned kNumSources = 2;

// Words of `counts`, all 64 bits wide. The positions are -1, or the first position in `ids`.
enum CountWord { kNumMissing, kBadAt, kBadTargetAt, kDamagedAt, kHits, kEncodedBytes = 6, kSectorBytes = 8 };

struct Request {
  const int64_t* ids;
  int64_t num_ids;
  uint64_t num_rows;   // of the data set: ids are below it
  const int64_t* at;   // null: row i goes to position i
  uint64_t num_out;    // rows of the output
  uint32_t tile_rows;  // ids that a warp takes at once, at most 32
  int64_t* missing_ids;
  int64_t* missing_at;
  unsigned long long* counts;
};

__device__ __forceinline__ void lower_to(unsigned long long* first, int64_t position) {
  atomicMin(first, static_cast<unsigned long long>(position));
}

// What a warp decodes of the ids that it takes at once.
struct Tile {
  Place* places;  // shared memory
  unsigned num_places;
  bool any_in_place;  // one of them is of an encoded row that lies in place
};

// Looks up the ids that begin at `first`; fills `places`. The caller synchronises the warp.
__device__ __forceinline__ Tile look_up(const Request& request, const RowShape& shape, const RowSource& cache,
                                        const RowSource& host, int64_t first, unsigned lane, Place* places) {
  const int64_t i = first + lane;
  const bool wanted = lane < request.tile_rows && i < request.num_ids;
  const int64_t id = wanted ? __ldg(request.ids + i) : 0;
  const int64_t target = wanted && request.at ? __ldg(request.at + i) : i;
  const bool good_id = static_cast<uint64_t>(id) < request.num_rows;
  const bool good_target = static_cast<uint64_t>(target) < request.num_out;
  const bool good = wanted && good_id && good_target;
  if (wanted && !good_id) lower_to(request.counts + kBadAt, i);
  if (wanted && !good_target) lower_to(request.counts + kBadTargetAt, i);

  Place place = {};
  int64_t slot = good ? find_slot(cache, id) : -1;
  if (good && slot < 0) {
    slot = find_slot(host, id);
    place.flags = kFromHost;
  }
  const bool found = slot >= 0;
  const RowSource source = pick(place.flags & kFromHost, cache, host);
  const bool well = found && locate(source, static_cast<uint64_t>(slot), shape, place);
  if (found && !well) lower_to(request.counts + kDamagedAt, i);

  const unsigned lanes_below = (1u << lane) - 1;
  const unsigned missing = __ballot_sync(kAllLanes, good && !found);
  if (missing) {
    unsigned long long at = 0;
    if (lane == 0)
      at = atomicAdd(request.counts + kNumMissing, static_cast<unsigned long long>(__popc(missing)));
    at = __shfl_sync(kAllLanes, at, 0) + static_cast<unsigned>(__popc(missing & lanes_below));
    if (good && !found) {
      request.missing_ids[at] = id;
      request.missing_at[at] = target;
    }
  }
  const unsigned present = __ballot_sync(kAllLanes, well);
  if (well) {
    place.out_at = static_cast<uint64_t>(target) * shape.row_bytes;
    place.lane = static_cast<uint16_t>(lane);
    places[__popc(present & lanes_below)] = place;
  }
  const bool any_in_place = __any_sync(kAllLanes, well && (place.flags & kInPlace));
  return {places, static_cast<unsigned>(__popc(present)), any_in_place};
}

// What a warp has served, one counter in each of its first lanes: hits, encoded bytes and sector bytes of
// the two sources.
class Served {
 public:
  // Adds the places of a tile, whose sizes and damage are known now; the warp is synchronised around it.
  __device__ __forceinline__ void add(const Request& request, const Tile& tile, int64_t first,
                                      unsigned lane) {
    uint32_t hit = 0, size = 0, sectors = 0;
    bool from_host = false;
    if (lane < tile.num_places) {
      const Place& place = tile.places[lane];
      if (place.damaged) {
        lower_to(request.counts + kDamagedAt, first + place.lane);
      } else {
        hit = 1, size = place.size;
        sectors = (unit_end(place.skip, size) - unit_begin(place.skip)) * kUnitBytes;
      }
      from_host = (place.flags & kFromHost) != 0;
    }
    count(lane, 0, from_host ? 0 : hit, from_host ? hit : 0);
    count(lane, 2, from_host ? 0 : size, from_host ? size : 0);
    count(lane, 4, from_host ? 0 : sectors, from_host ? sectors : 0);
  }

  __device__ __forceinline__ void finish(const Request& request, unsigned lane) const {
    if (lane < 3 * kNumSources && mine_) atomicAdd(request.counts + kHits + lane, mine_);
  }

 private:
  __device__ __forceinline__ void count(unsigned lane, unsigned at, uint32_t of_cache, uint32_t of_host) {
    const uint32_t cache = __reduce_add_sync(kAllLanes, of_cache);
    const uint32_t host = __reduce_add_sync(kAllLanes, of_host);
    if (lane == at) mine_ += cache;
    if (lane == at + 1) mine_ += host;
  }

  unsigned long long mine_ = 0;
};

// Serves all ids of a request, by blocks of WARPS warps. decode_tile(tile) is called by all lanes of a warp;
// it may change the sizes of places, and tells damage in them.
template <unsigned WARPS, typename DecodeTile>
__device__ __forceinline__ void serve_tiles(const Request& request, const RowShape& shape,
                                            const RowSource& cache, const RowSource& host,
                                            const DecodeTile& decode_tile) {
  SIMT_SHARED(Place, places, [WARPS][32]);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Served served;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * WARPS * request.tile_rows;
  int64_t first = (static_cast<int64_t>(blockIdx.x) * WARPS + warp) * request.tile_rows;
  for (; first < request.num_ids; first += stride) {
    const Tile tile = look_up(request, shape, cache, host, first, lane, places[warp]);
    __syncwarp();  // the places can be read
    decode_tile(tile);
    __syncwarp();  // sizes and damage can be read
    served.add(request, tile, first, lane);
    __syncwarp();  // they have been read
  }
  served.finish(request, lane);
}

}  // namespace gnn_ibp
