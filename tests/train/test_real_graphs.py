"""Training on real graphs with the settings that come with the program."""

from pathlib import Path

import accuracy
import pytest


def test_losses_on_cora_do_not_depend_on_codec_and_cache(shared_data: Path, tmp_path: Path) -> None:
    source = f"npz:{shared_data / 'cora.npz'}"
    base = accuracy.train(source, tmp_path, "--epochs", "3")
    raw = accuracy.train(source, tmp_path, "--epochs", "3", "--raw", "--no-cache")
    assert accuracy.results(raw) == accuracy.results(base)
    assert base["sources"]["cache"]["hits"] > 0
    assert "cache" not in raw["sources"] or raw["sources"]["cache"]["hits"] == 0
    assert raw["sources"]["disk"]["encoded_bytes"] == raw["sources"]["disk"]["logical_bytes"]
    assert len({epoch["loss"] for epoch in base["epochs"]}) == 3


def test_every_homogeneous_graph_has_a_reference(shared_data: Path) -> None:
    references = accuracy.reference_accuracies(shared_data / "README.md")
    names = accuracy.homogeneous_sets(shared_data)
    assert "cora" in names
    assert "debian-hetero" not in names
    assert {*names} <= references.keys()
    assert all(0 < references[name] < 1 for name in names)


@pytest.mark.slow
def test_citeseer_keeps_its_three_promises(shared_data: Path, tmp_path: Path) -> None:
    reference = accuracy.reference_accuracies(shared_data / "README.md")["citeseer"]
    measured = accuracy.measure(shared_data, "citeseer", reference, 1, tmp_path)
    assert measured.broken == []
    assert measured.inference == "exact"
