"""What a run needs of memory is seen."""

import gc
import mmap

from gnn_ibp.train.memory import PeakMemory, anon_bytes


def test_peak_counts_memory_that_is_given_back() -> None:
    gc.collect()  # what other tests left behind must not go away in between
    before = anon_bytes()
    assert before is not None
    with PeakMemory(interval_s=0.01) as peak:
        # pages of its own: malloc may have kept as many of an earlier test's
        block = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.write(bytes(64 << 20))
        peak.look()
        block.close()
    assert peak.anon_bytes is not None
    assert peak.anon_bytes >= before + (60 << 20)
    assert peak.rss_bytes >= peak.anon_bytes
