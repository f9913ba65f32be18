"""The report: plain JSON, whole or not at all, and tables that say what was counted."""

import json
from pathlib import Path

import pytest
import torch

from gnn_ibp import report
from gnn_ibp.disk_file import NewFile

CACHE = {
    "lookups": 1000,
    "hits": 750,
    "misses": 250,
    "hit_rate": 0.75,
    "logical_bytes": 750 * 512,
    "encoded_bytes": 750 * 384,
    "physical_bytes": 750 * 384,
    "seconds": 0.25,
}
UNUSED = {**dict.fromkeys(CACHE, 0), "hit_rate": None}


def test_table_shows_rates_and_bytes_saved() -> None:
    header, cache, disk = report.sources_table({"cache": CACHE, "disk": UNUSED}).splitlines()
    assert header.split()[:3] == ["tier", "lookups", "hits"]
    assert "75.0 %" in cache
    assert "25.0 %" in cache
    assert "375 KiB" in cache
    assert "-" in disk.split()


def test_pcie_is_told_of_the_tiers_that_crossed_it() -> None:
    host = {**CACHE, "encoded_bytes": 3 << 30, "pcie_bytes": 4 << 30, "seconds": 0.0}
    sources = {
        "cache": {**CACHE, "pcie_bytes": 0, "seconds": 0.2},
        "host": host,
        "disk": {**CACHE, "seconds": 9},
    }
    wanted = "PCIe: 3.00 GiB encoded in 4.00 GiB of sectors, 21.5 GB/s"
    assert report.pcie_text(sources) == wanted
    assert report.tiers_text(sources, "  ").splitlines()[-1] == "  " + wanted
    staged = {"cache": {**CACHE, "seconds": 9}, "disk": {**host, "seconds": 2}}
    assert report.pcie_text(staged) == "PCIe: 3.00 GiB encoded in 4.00 GiB of sectors, 2.1 GB/s"


def test_pcie_without_a_clock_has_no_rate() -> None:
    host = {**CACHE, "encoded_bytes": 900, "pcie_bytes": 1024, "seconds": 0.0}
    assert report.pcie_text({"host": host}) == "PCIe: 900 B encoded in 1.00 KiB of sectors"


def test_nothing_is_said_of_pcie_on_the_cpu() -> None:
    sources = {"cache": CACHE, "disk": {**UNUSED, "pcie_bytes": 0}}
    assert report.pcie_text(sources) is None
    assert report.tiers_text(sources) == report.sources_table(sources)


def test_capacity_compares_with_raw_rows() -> None:
    text = report.capacity_text(1 << 30, 2_410_000, 2_097_152)
    assert text == "1.00 GiB holds 2.41 M rows instead of 2.10 M"


def test_json_has_no_nan_and_every_digit(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    loss = 0.1 + 0.2
    report.write_json(
        path, {"loss": loss, "bad": [float("nan"), float("inf")], "n": torch.tensor(3), "p": path}
    )
    assert json.loads(path.read_text()) == {"loss": loss, "bad": [None, None], "n": 3, "p": str(path)}
    assert repr(loss) in path.read_text()


def test_failed_write_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    report.write_json(path, {"epochs": 1})

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NewFile, "write", fail)
    with pytest.raises(OSError, match="No space left"):
        report.write_json(path, {"epochs": 2})
    assert json.loads(path.read_text()) == {"epochs": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]
