// Edges that are sorted through files, for Python.
#include "bindings/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

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

template <class Index>
void bind_sort_records(nb::module_& m) {
  m.def(
      "sort_records",
      [](In<uint8_t, 1> records, bool wide, bool ranked, In<int64_t, 1> starts, int64_t first_node, int shift,
         bool dedup, Out<uint8_t, 1> scratch, Out<Index, 1> indices, std::optional<Out<int64_t, 1>> perm,
         Out<int64_t, 1> counts) {
        require(starts.size() > 0 && starts.data()[0] == 0, "starts must begin with 0");
        const int64_t num_buckets = static_cast<int64_t>(starts.size()) - 1;
        const int64_t num_records = starts.data()[num_buckets];
        require(indices.size() >= static_cast<size_t>(num_records), "indices is too short");
        require(!perm || (ranked && perm->size() >= static_cast<size_t>(num_records)), "perm does not fit");
        require(shift >= 0 && shift < 62 && static_cast<int64_t>(counts.size()) >> shift >= num_buckets,
                "counts is too short");
        return with_record(wide, ranked, [&]<class Record>(Record) {
          require(scratch.size() / sizeof(Tail<Record>) >= static_cast<size_t>(num_records),
                  "scratch is too short");
          const RecordBuckets<Record> buckets{records_of<Record>(records, num_records), starts.data(),
                                              num_buckets, first_node, shift};
          auto* tails = reinterpret_cast<Tail<Record>*>(scratch.data());
          nb::gil_scoped_release release;
          return sort_records(buckets, dedup, tails, indices.data(), perm ? perm->data() : nullptr,
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
