"""What the fork server's children do: every way in which this program writes files, as small as it gets."""

import importlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bad_server import Served, serving
from kill_conversion import make_everything_small
from ogb_folders import SmallGraph, write_raw_folder

from gnn_ibp.conversion.need import ConversionNeed
from gnn_ibp.converters import archive, download, ogb
from gnn_ibp.converters.ogb_table import ogb_dataset
from gnn_ibp.dataset import Dataset
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.train import cli, commands, run  # noqa: F401, these two are imported late

NUM_NODES, NUM_EDGES = 300, 1500
GRAPH = SmallGraph(num_nodes=NUM_NODES, num_edges=NUM_EDGES, num_columns=10)


@dataclass(frozen=True)
class Job:
    """prepare(root): what it begins with comes into the folder `root`, what it reads into sources(root).

    work(root): what is done, and may fail; returns the exit status.
    """

    prepare: Callable[[Path], object]
    work: Callable[[Path], int]

    def begin(self, root: Path) -> None:
        """Makes a finished data set `beside`, and prepares."""
        root.mkdir(parents=True)
        sources(root).mkdir()
        make_dataset(root / "beside")
        self.prepare(root)


def sources(root: Path) -> Path:
    """A folder in which no call fails."""
    return root.with_name("sources")


def gnn_ibp(*args: object) -> int:
    """The command line."""
    return cli.main([str(arg) for arg in args])


def make_dataset(path: Path) -> int:
    """A data set with everything in it, from arrays in memory. Ends as a command does."""
    rng = np.random.default_rng(1)

    def make(_: Any) -> int:
        Dataset.from_arrays(
            path,
            edge_index=GRAPH.edge_index,
            x=iter(np.array_split(GRAPH.node_feat, 3)),
            y=GRAPH.node_label[:, 0],
            split={"train": GRAPH.split["train"], "test": GRAPH.split["test"]},
            features={"z": rng.integers(0, 100, (NUM_NODES, 3))},
            edge_features={"w": rng.standard_normal((NUM_EDGES, 2))},
            arrays={"year": GRAPH.node_year},
            edge_arrays={"edge_type": np.arange(NUM_EDGES) % 3},
        )
        return 0

    cli.COMMANDS["make"] = make
    return gnn_ibp("make")


def prepare_npz(root: Path) -> None:
    np.savez(
        sources(root) / "graph.npz",
        x=GRAPH.node_feat,
        y=GRAPH.node_label[:, 0],
        edge_index=GRAPH.edge_index,
        train_idx=GRAPH.split["train"],
        test_idx=GRAPH.split["test"],
        node_type=GRAPH.node_year[:, 0],
        edge_type=np.arange(NUM_EDGES) % 3,
    )


def prepare_folder(root: Path) -> None:
    make_dataset(sources(root) / "given")


def convert(source: str, *flags: object) -> Callable[[Path], int]:
    """`gnn-ibp convert`; {} in `source` stands for the folder of sources."""

    def work(root: Path) -> int:
        folder = sources(root)
        return gnn_ibp("convert", source.format(folder), root / "ds", "--raw-root", folder, *flags)

    return work


def through_files(work: Callable[[Path], int]) -> Callable[[Path], int]:
    """The same, the edges sorted through files."""

    def worked(root: Path) -> int:
        EdgeSortPlan.held = False  # type: ignore[assignment,method-assign]
        return work(root)

    return worked


def not_looking(work: Callable[[Path], int]) -> Callable[[Path], int]:
    """The same, without a look at the room on the disk."""

    def worked(root: Path) -> int:
        ConversionNeed.check_disk = lambda *_: ""  # type: ignore[assignment,method-assign]
        return work(root)

    return worked


def prepare_download(root: Path) -> None:
    """The archive that the server has."""
    folder = write_raw_folder(sources(root), "ogbn-arxiv", GRAPH)
    with zipfile.ZipFile(sources(root) / "arxiv.zip", "w") as archive:
        for path in sorted(folder.rglob("*.*")):
            archive.write(path, f"arxiv/{path.relative_to(folder)}")


def fetch(root: Path) -> int:
    """Downloads, extracts and converts; the server cuts the first connection."""
    served = Served((sources(root) / "arxiv.zip").read_bytes(), cut_after=9000, cuts=1)
    download.time.sleep = lambda seconds: None  # type: ignore[attr-defined]
    download.BLOCK_BYTES, archive.BLOCK_BYTES = 4096, 8192
    ogb.SHAPES["ogbn-arxiv"] = (NUM_NODES, NUM_EDGES, GRAPH.num_columns)
    with serving(served) as url:
        dataset = replace(ogb_dataset("ogbn-arxiv"), url=url)
        ogb.ogb_dataset = lambda name: dataset  # type: ignore[attr-defined]
        return gnn_ibp("convert", "ogbn-arxiv", root / "ds")


def prepare_training(root: Path) -> None:
    """A data set, and what an earlier run wrote."""
    make_dataset(root / "ds")
    train(root, "--seed", 7)


def train(root: Path, *flags: object) -> int:
    outputs = ("--save", root / "model.pt", "--report", root / "report.json")
    small = ("--epochs", 1, "--hidden", 4, "--fanout", "3,2", "--batch-size", 60, "--threads", 1)
    return gnn_ibp("train", "--dataset", root / "ds", *small, *outputs, *flags)


def _make_smaller() -> None:
    """Blocks, runs and checkpoints: several of each in these graphs."""
    make_everything_small(
        block_edges=300,
        checkpoint_edges=600,
        checkpoint_records=900,
        checkpoint_bytes=3000,
        block_bytes=1500,
        run_records=700,
        load_records=500,
        shift=4,
    )


def load_the_rest() -> None:
    """Imports what is imported at its first use otherwise: by the flags, zip files, threads."""
    cli.config_from_args([])
    cli.parse(cli.ConvertFlags, ["source", "out"], "")
    "".encode("cp437")
    importlib.import_module("multiprocessing.synchronize")
    importlib.import_module("torch.utils.serialization.config")


_make_smaller()

FROM_NPZ = convert("npz:{}/graph.npz")
DEDUP = through_files(convert("{}/given", "--dedup"))

JOBS = {
    "npz": Job(prepare_npz, FROM_NPZ),
    "npz, no look at the disk": Job(prepare_npz, not_looking(FROM_NPZ)),
    "npz in place, both directions, through files": Job(
        prepare_npz, through_files(convert("npz:{}/graph.npz", "--layout", "in-place", "--undirected"))
    ),
    "arrays": Job(lambda root: None, lambda root: make_dataset(root / "ds")),
    "folder": Job(prepare_folder, convert("{}/given", "--align", 16)),
    "folder, through files": Job(prepare_folder, DEDUP),
    "folder, through files, no look at the disk": Job(prepare_folder, not_looking(DEDUP)),
    "OGB csv": Job(
        lambda root: write_raw_folder(sources(root), "ogbn-arxiv", GRAPH),
        through_files(convert("ogbn-arxiv")),
    ),
    "OGB npz": Job(
        lambda root: write_raw_folder(sources(root), "ogbn-papers100M", GRAPH), convert("ogbn-papers100M")
    ),
    "download": Job(prepare_download, fetch),
    "training": Job(prepare_training, lambda root: train(root, "--raw")),
}
