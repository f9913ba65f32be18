// Edges on their way to their destinations, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bindings/arrays.h"
#include "cpu/edge_records.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace gnn_ibp {
namespace {

// Records cross the binding as bytes. Calls body(Record()) for the kind of record.
template <class Body>
auto with_record(bool wide, bool ranked, const Body& body) {
  if (ranked) return wide ? body(RankedRecord<uint64_t>()) : body(RankedRecord<uint32_t>());
  return wide ? body(EdgeRecord<uint64_t>()) : body(EdgeRecord<uint32_t>());
}

template <class Record>
const Record* records_of(const In<uint8_t, 1>& bytes, int64_t num_records) {
  require(num_records >= 0 && bytes.size() / sizeof(Record) >= static_cast<size_t>(num_records),
          "the records are too short");
  return reinterpret_cast<const Record*>(bytes.data());
}

template <class Record>
Record* records_of(const Out<uint8_t, 1>& bytes, int64_t num_records) {
  require(num_records >= 0 && bytes.size() / sizeof(Record) >= static_cast<size_t>(num_records),
          "the records are too short");
  return reinterpret_cast<Record*>(bytes.data());
}

template <class Id>
void bind_pack_edges(nb::module_& m) {
  m.def(
      "pack_edges",
      [](In<Id, 1> src, In<Id, 1> dst, int64_t num_nodes, int64_t first, bool undirected, bool wide,
         bool ranked, Out<uint8_t, 1> out) {
        require(src.size() == dst.size(), "src and dst differ in length");
        const EdgeList<Id> edges{src.data(), dst.data(), static_cast<int64_t>(src.size())};
        return with_record(wide, ranked, [&]<class Record>(Record) {
          Record* records = records_of<Record>(out, undirected ? 2 * edges.num_edges : edges.num_edges);
          nb::gil_scoped_release release;
          return pack_edges(edges, num_nodes, first, undirected, records);
        });
      },
      "src"_a.noconvert(), "dst"_a.noconvert(), "num_nodes"_a, "first"_a, "undirected"_a, "wide"_a,
      "ranked"_a, "out"_a.noconvert());
}

// starts: (num_runs, num_buckets + 1), ascending in each row.
int64_t count_records(const In<int64_t, 2>& starts) {
  const int64_t num_runs = static_cast<int64_t>(starts.shape(0)),
                columns = static_cast<int64_t>(starts.shape(1));
  require(columns > 0, "starts must have a column");
  int64_t count = 0;
  for (const int64_t* row = starts.data(); row < starts.data() + num_runs * columns; row += columns) {
    require(row[0] >= 0 && std::is_sorted(row, row + columns), "starts must ascend");
    count += row[columns - 1] - row[0];
  }
  return count;
}

int64_t last_record(const In<int64_t, 2>& starts) {
  return starts.size() ? *std::max_element(starts.data(), starts.data() + starts.size()) : 0;
}

template <class Index>
void bind_sort_records(nb::module_& m) {
  m.def(
      "sort_records",
      [](In<uint8_t, 1> records, bool wide, bool ranked, In<int64_t, 2> starts, int64_t first_node, int shift,
         bool dedup, Out<uint8_t, 1> scratch, Out<Index, 1> indices, std::optional<Out<int64_t, 1>> perm,
         Out<int64_t, 1> counts) {
        const int64_t num_records = count_records(starts);
        const int64_t num_runs = static_cast<int64_t>(starts.shape(0));
        const int64_t num_buckets = static_cast<int64_t>(starts.shape(1)) - 1;
        require(indices.size() >= static_cast<size_t>(num_records), "indices is too short");
        require(!perm || (ranked && perm->size() >= static_cast<size_t>(num_records)), "perm does not fit");
        require(shift >= 0 && shift < 62 && static_cast<int64_t>(counts.size()) >> shift >= num_buckets,
                "counts is too short");
        return with_record(wide, ranked, [&]<class Record>(Record) {
          require(scratch.size() / sizeof(Tail<Record>) >= static_cast<size_t>(num_records),
                  "scratch is too short");
          const RecordRuns<Record> runs{records_of<Record>(records, last_record(starts)),
                                        starts.data(),
                                        num_runs,
                                        num_buckets,
                                        first_node,
                                        shift};
          auto* tails = reinterpret_cast<Tail<Record>*>(scratch.data());
          nb::gil_scoped_release release;
          return sort_records(runs, dedup, tails, indices.data(), perm ? perm->data() : nullptr,
                              counts.data());
        });
      },
      "records"_a.noconvert(), "wide"_a, "ranked"_a, "starts"_a.noconvert(), "first_node"_a, "shift"_a,
      "dedup"_a, "scratch"_a.noconvert(), "indices"_a.noconvert(), "perm"_a.noconvert().none(),
      "counts"_a.noconvert());
}

}  // namespace

void bind_edge_records(nb::module_& m) {
  m.def(
      "record_bytes",
      [](bool wide, bool ranked) {
        return with_record(wide, ranked, []<class Record>(Record) {
          return std::pair<size_t, size_t>(sizeof(Record), sizeof(Tail<Record>));
        });
      },
      "wide"_a, "ranked"_a, "bytes of a record, and of what is sorted of it");
  bind_pack_edges<int32_t>(m);
  bind_pack_edges<int64_t>(m);
  m.def(
      "partition_records",
      [](In<uint8_t, 1> records, bool wide, bool ranked, int64_t num_records, int shift, Out<uint8_t, 1> out,
         Out<int64_t, 1> starts) {
        require(starts.size() > 0 && shift >= 0 && shift < 63, "there must be a bucket");
        with_record(wide, ranked, [&]<class Record>(Record) {
          const Record* from = records_of<Record>(records, num_records);
          Record* to = records_of<Record>(out, num_records);
          nb::gil_scoped_release release;
          partition_records(from, num_records, shift, static_cast<int64_t>(starts.size()) - 1, to,
                            starts.data());
        });
      },
      "records"_a.noconvert(), "wide"_a, "ranked"_a, "num_records"_a, "shift"_a, "out"_a.noconvert(),
      "starts"_a.noconvert());
  bind_sort_records<int32_t>(m);
  bind_sort_records<int64_t>(m);
}

}  // namespace gnn_ibp
