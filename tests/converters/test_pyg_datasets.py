"""PyG's data sets by name, from raw folders laid out as PyG downloads them; nothing is downloaded here."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch_geometric.datasets
from some_rows import feature_rows

from gnn_ibp.converters.prepare import prepare
from gnn_ibp.errors import FormatError

RNG = np.random.default_rng(2)
NUM_COLUMNS = 12


def features(num_nodes: int) -> np.ndarray:
    return (RNG.random((num_nodes, NUM_COLUMNS)) < 0.2).astype(np.float32)


def lay_planetoid(folder: Path, name: str) -> np.ndarray:
    """700 nodes: 20 to train on, 600 more without the test nodes, 80 test nodes."""
    folder.mkdir(parents=True)
    x, y = features(700), np.eye(4)[RNG.integers(0, 4, 700)]
    contents = {
        "x": sp.csr_matrix(x[:20]),
        "allx": sp.csr_matrix(x[:620]),
        "tx": sp.csr_matrix(x[620:]),
        "y": y[:20],
        "ally": y[:620],
        "ty": y[620:],
        "graph": {node: [(node + 1) % 700, (node + 699) % 700] for node in range(700)},
    }
    for key, content in contents.items():
        (folder / f"ind.{name}.{key}").write_bytes(pickle.dumps(content))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{node}\n" for node in range(620, 700)))
    return x


def lay_npz(path: Path) -> np.ndarray:
    """Amazon and Coauthor: a ring of 40 nodes, one-way."""
    path.parent.mkdir(parents=True)
    x = features(40)
    attr, adj = sp.csr_matrix(x), sp.csr_matrix(np.roll(np.eye(40), 1, axis=1))
    parts = {"attr": attr, "adj": adj}
    arrays: dict[str, Any] = {"labels": np.arange(40) % 3}
    for key, matrix in parts.items():
        for part in ("data", "indices", "indptr"):
            arrays[f"{key}_{part}"] = getattr(matrix, part)
        arrays[f"{key}_shape"] = matrix.shape
    np.savez(path, **arrays)
    return x


def lay_reddit(folder: Path) -> np.ndarray:
    folder.mkdir(parents=True)
    x = RNG.standard_normal((40, NUM_COLUMNS)).astype(np.float32)
    types = np.repeat([1, 2, 3], [20, 10, 10])
    np.savez(folder / "reddit_data.npz", feature=x, label=np.arange(40) % 5, node_types=types)
    sp.save_npz(folder / "reddit_graph.npz", sp.coo_matrix(np.roll(np.eye(40), 1, axis=1)))
    return x


def lay_flickr(folder: Path) -> np.ndarray:
    folder.mkdir(parents=True)
    x = RNG.standard_normal((40, NUM_COLUMNS)).astype(np.float32)
    adj = sp.csr_matrix(np.roll(np.eye(40), 1, axis=1))
    np.savez(folder / "adj_full.npz", data=adj.data, indices=adj.indices, indptr=adj.indptr, shape=adj.shape)
    np.save(folder / "feats.npy", x)
    (folder / "class_map.json").write_text(json.dumps({str(node): node % 7 for node in range(40)}))
    role = {"tr": list(range(20)), "va": list(range(20, 30)), "te": list(range(30, 40))}
    (folder / "role.json").write_text(json.dumps(role))
    return x


def lay(name: str, raw: Path) -> np.ndarray:
    if name in ("cora", "citeseer", "pubmed"):
        spelled = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}[name]
        return lay_planetoid(raw / "Planetoid" / spelled / "raw", name)
    if name.startswith("amazon-"):
        kind = name.removeprefix("amazon-")
        return lay_npz(raw / "Amazon" / kind.capitalize() / "raw" / f"amazon_electronics_{kind}.npz")
    if name.startswith("coauthor-"):
        kind = {"coauthor-cs": "CS", "coauthor-physics": "Physics"}[name]
        return lay_npz(raw / "Coauthor" / kind / "raw" / f"ms_academic_{kind[:3].lower()}.npz")
    return lay_reddit(raw / "Reddit" / "raw") if name == "reddit" else lay_flickr(raw / "Flickr" / "raw")


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("cora", [20, 500, 80]),
        ("citeseer", [20, 500, 80]),
        ("pubmed", [20, 500, 80]),
        ("amazon-computers", [24, 8, 8]),
        ("amazon-photo", [24, 8, 8]),
        ("coauthor-cs", [24, 8, 8]),
        ("coauthor-physics", [24, 8, 8]),
        ("reddit", [20, 10, 10]),
        ("flickr", [20, 10, 10]),
    ],
)
def test_a_raw_folder_is_used_as_it_is(tmp_path: Path, name: str, splits: list[int]) -> None:
    x = lay(name, tmp_path / "data" / "raw")
    before = files_below(tmp_path / "data" / "raw")
    dataset = prepare(name, tmp_path / "data")
    np.testing.assert_array_equal(feature_rows(dataset), x)
    assert [len(dataset.split[part]) for part in ("train", "val", "test")] == splits
    assert dataset.num_edges in (len(x), 2 * len(x)) and dataset.num_classes > 2
    assert dataset.path == tmp_path / "data" / name
    assert files_below(tmp_path / "data" / "raw") == before
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted([name, "raw"])


def test_raw_root_may_be_the_root_that_pyg_was_given(tmp_path: Path) -> None:
    lay_planetoid(tmp_path / "mine" / "cora" / "raw", "cora")
    lay_reddit(tmp_path / "reddit" / "raw")
    assert prepare("Cora", tmp_path / "data", raw_root=tmp_path / "mine").num_nodes == 700
    assert prepare("Reddit", tmp_path / "data", raw_root=tmp_path / "reddit").num_nodes == 40


def test_usual_names_mean_the_same_data_set(tmp_path: Path) -> None:
    lay("amazon-photo", tmp_path / "raw")
    assert prepare("Photo", tmp_path).path == prepare("amazon-photo", tmp_path).path


def test_a_failed_download_names_the_folder_to_fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(self: Any) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(torch_geometric.datasets.Planetoid, "download", download)
    with pytest.raises(OSError, match=r"cora cannot be downloaded .*no route.*Planetoid/Cora/raw yourself"):
        prepare("cora", tmp_path)
    assert not (tmp_path / "cora").exists()


def test_a_missing_raw_folder_is_filled_by_pyg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(self: Any) -> None:
        Path(self.raw_dir).rmdir()
        lay_reddit(Path(self.raw_dir))

    monkeypatch.setattr(torch_geometric.datasets.Reddit, "download", download)
    assert prepare("reddit", tmp_path).num_nodes == 40
    assert (tmp_path / "raw" / "Reddit" / "raw" / "reddit_data.npz").exists()


def test_damaged_raw_files_are_named_with_the_remedy(tmp_path: Path) -> None:
    lay("flickr", tmp_path / "raw")
    (tmp_path / "raw" / "Flickr" / "raw" / "role.json").write_text("{")
    with pytest.raises(FormatError, match=r"raw files of flickr in .*Flickr/raw cannot be read.*remove"):
        prepare("flickr", tmp_path)
    assert not (tmp_path / "flickr").exists()


def test_edges_are_those_that_pyg_reads(tmp_path: Path) -> None:
    lay("reddit", tmp_path / "raw")
    dataset = prepare("reddit", tmp_path)
    assert torch.equal(
        torch.from_numpy(dataset.graph.indices), torch.arange(39, -1, -1).flip(0).roll(1).int()
    )
