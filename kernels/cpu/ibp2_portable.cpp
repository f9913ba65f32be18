// Row format version 2 in plain C++: blocks of 256 coded chunks, in loops that a compiler may turn into
// vectors.
#define GNN_IBP_TARGET
#define GNN_IBP_INLINE [[gnu::always_inline]] inline
#include "cpu/ibp2_block.h"
#include "cpu/ibp2_codes.h"
#include "cpu/ibp2_rows.h"

namespace gnn_ibp {
namespace {

template <typename Word>
using PortableBlock = Ibp2Block<Word, Ibp2Codes<Word>>;

}  // namespace

template <typename Word>
Ibp2Level<Word> ibp2_portable() {
  return Ibp2Rows<Word, PortableBlock>::level(0);
}

template Ibp2Level<uint8_t> ibp2_portable();
template Ibp2Level<uint16_t> ibp2_portable();
template Ibp2Level<uint32_t> ibp2_portable();
template Ibp2Level<uint64_t> ibp2_portable();

}  // namespace gnn_ibp
