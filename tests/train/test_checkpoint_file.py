"""A checkpoint comes back as it was written, or is an error that names it: never another state."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch

from gnn_ibp.errors import FormatError
from gnn_ibp.train import checkpoint_file
from gnn_ibp.train.checkpoint_file import read_checkpoint, write_checkpoint, writing_bytes
from gnn_ibp.train.model import GraphSAGE


def make_state() -> dict[str, Any]:
    return {"weights": torch.arange(300.0), "losses": (0.1, 7), "best": None, "epochs": [{"loss": 1 / 3}]}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    plain = [{name: value for name, value in one.items() if name != "weights"} for one in (a, b)]
    return plain[0] == plain[1] and torch.equal(a["weights"], b["weights"])


def test_state_comes_back_with_every_bit(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.checkpoint", make_state())
    assert same(read_checkpoint(tmp_path / "a.checkpoint"), make_state())
    assert [path.name for path in tmp_path.iterdir()] == ["a.checkpoint"]


def test_every_cut_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.checkpoint"
    write_checkpoint(path, make_state())
    whole = path.read_bytes()
    for size in [*range(60), *range(60, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=r"a\.checkpoint is (cut short|damaged)"):
            read_checkpoint(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(FormatError, match="is damaged"):
        read_checkpoint(path)


def test_every_flipped_bit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.checkpoint"
    write_checkpoint(path, make_state())
    whole = path.read_bytes()
    for bit in [*range(8 * 60), *range(8 * 60, 8 * len(whole), 151)]:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(FormatError, match=r"a\.checkpoint is damaged"):
            read_checkpoint(path)


def test_other_versions_are_told_from_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_file, "VERSION", 2)
        write_checkpoint(tmp_path / "a", make_state())
    with pytest.raises(FormatError, match="a has format version 2, this program reads version 1"):
        read_checkpoint(tmp_path / "a")


def test_content_that_torch_does_not_know_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", lambda state, file: file.write(b"of a later torch"))
        write_checkpoint(tmp_path / "a", make_state())
    with pytest.raises(FormatError, match=r"a is whole, torch .* cannot read it"):
        read_checkpoint(tmp_path / "a")


def test_writing_takes_no_more_memory_than_is_planned(tmp_path: Path) -> None:
    model = GraphSAGE(200, 400, 2, 10)
    optimizer = torch.optim.Adam(model.parameters())
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    best = {name: weight.clone() for name, weight in model.state_dict().items()}
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "best_weights": best}
    tracemalloc.start()
    try:
        write_checkpoint(tmp_path / "a", state)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 4 * model.weight_bytes < taken < writing_bytes(model)
