"""The measurements for a GPU, run on the CPU harness: their numbers mean nothing, that they come does."""

import bench_gpu
import bench_gpu_epoch
import pytest
import torch
from simt_cuda import SimtCuda

from gnn_ibp.converters.prepare import prepare


@pytest.fixture(scope="module")
def cuda() -> SimtCuda:
    return SimtCuda()


SOME = [kind for kind in bench_gpu.KINDS if kind.num_columns in (100, 1433) and kind.dtype == torch.float32]


@pytest.mark.parametrize("kind", SOME, ids=lambda kind: f"{kind.name}-v{kind.version}")
def test_rows_are_measured_and_compared(cuda: SimtCuda, kind: bench_gpu.Kind):
    measured = bench_gpu.measure(cuda, kind, bench_gpu.Sizes(32 << 10, 16 << 10, rounds=1))
    assert list(measured.gather_gbs) == [0, 50, 90, 100]
    assert 0 < measured.saved < 1
    assert min(measured.raw_gbs, measured.pcie_gbs, measured.cpu_gbs, *measured.gather_gbs.values()) > 0
    assert bench_gpu.line(measured).startswith(f"{kind.name} {kind.num_columns} float32 v{kind.version}")
    assert len(bench_gpu.head(1.0, "none").splitlines()[1]) == len(bench_gpu.line(measured)) + len("   GB/s")


def test_every_kind_has_a_kernel():
    for kind in bench_gpu.KINDS:
        assert kind.codec(bench_gpu.make_rows(kind, 1 << 19)).device_kernel is not None


def test_a_wrong_row_is_noticed(cuda: SimtCuda, monkeypatch: pytest.MonkeyPatch):
    gather = bench_gpu.RowsOnDevice.gather

    def wrong(self: bench_gpu.RowsOnDevice, percent: int, ids: torch.Tensor, *rest: torch.Tensor) -> None:
        gather(self, percent, ids.roll(1), *rest)

    monkeypatch.setattr(bench_gpu.RowsOnDevice, "gather", wrong)
    with pytest.raises(AssertionError, match="decoded rows differ at 0 % hits"):
        bench_gpu.measure(cuda, bench_gpu.KINDS[0], bench_gpu.Sizes(32 << 10, 16 << 10, rounds=1))


def test_ceiling_reads_whole_lines(cuda: SimtCuda):
    assert bench_gpu.ceiling_gbs(cuda, bench_gpu.Sizes(64 << 10, rounds=1)) > 0


def test_epochs_of_raw_and_compressed_rows_are_split(cuda: SimtCuda, tmp_path):
    dataset = prepare("synthetic:300", tmp_path, say=lambda _: None)
    work = bench_gpu_epoch.Workload(num_batches=2, batch_size=20, fanout=(3, 2), cache_share=0.2)
    raw, compressed = (bench_gpu_epoch.measure(cuda, dataset, work, raw=raw) for raw in (True, False))
    assert compressed.loss == raw.loss
    assert compressed.logical_bytes == raw.logical_bytes
    assert compressed.hit_rate > raw.hit_rate > 0
    assert 0 < compressed.pcie_bytes < raw.pcie_bytes < raw.logical_bytes
    assert "compressed" in bench_gpu_epoch.table([raw, compressed], "none", work).splitlines()[-1]
