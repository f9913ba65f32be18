"""A training run: what it gives, what it promises, and how it fails."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.nn.models import GraphSAGE as PyGGraphSAGE

from gnn_ibp import Dataset, FeatureStore
from gnn_ibp.train import evaluate, loop
from gnn_ibp.train import run as run_module
from gnn_ibp.train.cli import main
from gnn_ibp.train.saved_model import load_model

QUICK = [
    "--dataset",
    "synthetic:2000",
    "--epochs",
    "2",
    "--hidden",
    "16",
    "--fanout",
    "5,4",
    "--batch-size",
    "300",
]


def run(root: Path, out: Path, *args: str) -> dict[str, Any]:
    path = out / "report.json"
    assert main(["train", *QUICK, "--root", str(root), "--report", str(path), *args]) == 0
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def results(report: dict[str, Any]) -> list[Any]:
    return [[(epoch["loss"], epoch["val_acc"]) for epoch in report["epochs"]], report["test_acc"]]


@pytest.fixture(scope="module")
def base(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(root, tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--no-cache"],
        ["--raw"],
        ["--raw", "--no-cache"],
        ["--hot-set", "degree", "--cache-bytes", "100KiB"],
        ["--hot-set", "none"],
        ["--prefetch", "0"],
        ["--prefetch", "5", "--threads", "3"],
        ["--threads", "1"],
    ],
    ids=" ".join,
)
def test_losses_are_the_same_digit_for_digit(
    root: Path, tmp_path: Path, base: dict[str, Any], args: list[str]
) -> None:
    assert results(run(root, tmp_path, *args)) == results(base)


@pytest.mark.parametrize("version", ["1", "2"])
def test_losses_are_the_same_in_every_row_format(tmp_path: Path, base: dict[str, Any], version: str) -> None:
    for args in (["--cache-bytes", "100KiB"], ["--no-cache"]):
        assert results(run(tmp_path / "data", tmp_path, "--format", version, *args)) == results(base)
    assert Dataset.open(tmp_path / "data" / "synthetic-2000").row_format() == int(version)


@pytest.mark.parametrize("args", [[], ["--raw"]], ids=["encoded", "raw"])
def test_a_cache_of_any_size_gets_room_for_all_rows(root: Path, tmp_path: Path, args: list[str]) -> None:
    assert run(root, tmp_path, *args)["caches"]["cache"]["rows"] == 2000


def test_seed_changes_the_losses(root: Path, tmp_path: Path, base: dict[str, Any]) -> None:
    assert results(run(root, tmp_path, "--seed", "1")) != results(base)


def test_model_learns(root: Path, tmp_path: Path) -> None:
    report = run(root, tmp_path, "--epochs", "8", "--hidden", "64", "--lr", "0.01")
    losses = [epoch["loss"] for epoch in report["epochs"]]
    assert losses[-1] < 0.7 * losses[0]
    assert report["test_acc"] > 0.4  # of 40 classes


def test_report_has_the_documented_shape(base: dict[str, Any]) -> None:
    assert {"settings", "epochs", "test_acc", "inference", "peak_rss_bytes", "peak_anon_bytes"} <= base.keys()
    assert base["inference"] == "exact"
    assert 0 < base["peak_anon_bytes"] <= base["peak_rss_bytes"]
    assert base["settings"]["torch_threads"] == torch.get_num_threads()
    assert base["settings"]["normalize"] == "standard"
    for number, epoch in enumerate(base["epochs"], 1):
        assert epoch["epoch"] == number
        assert {"sample", "fetch", "train", "wait", "total"} <= epoch["seconds"].keys()
        cache, disk = epoch["sources"]["cache"], epoch["sources"]["disk"]
        for tier in (cache, disk):
            assert tier["hits"] + tier["misses"] == tier["lookups"]
            assert {"hit_rate", "logical_bytes", "encoded_bytes", "physical_bytes", "seconds"} <= tier.keys()
        assert disk["lookups"] == cache["misses"]


def test_epochs_add_up_to_less_than_the_run(base: dict[str, Any]) -> None:
    lookups = [epoch["sources"]["cache"]["lookups"] for epoch in base["epochs"]]
    assert all(lookups)
    assert base["sources"]["cache"]["lookups"] > sum(lookups)  # validation and test come on top


def test_max_batches_ends_the_epochs(root: Path, tmp_path: Path, base: dict[str, Any]) -> None:
    report = run(root, tmp_path, "--max-batches", "2")
    assert [epoch["batches"] for epoch in report["epochs"]] == [2, 2]
    assert base["epochs"][0]["batches"] == 4


def test_terminal_shows_settings_tiers_and_capacity(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(root, tmp_path)
    out = capsys.readouterr().out
    assert "settings: dataset=synthetic:2000" in out
    assert "device=cpu" in out
    assert "device_name=" in out
    assert "on disk" in out
    assert "epoch 2/2" in out
    assert "holds" in out
    assert "instead of" in out
    assert "peak memory" in out


def test_saved_weights_are_the_best_and_work_in_pyg(root: Path, tmp_path: Path) -> None:
    report = run(root, tmp_path, "--save", str(tmp_path / "model.pt"))
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    best = max(report["epochs"], key=lambda epoch: epoch["val_acc"])
    assert content["epoch"] == best["epoch"]
    ds = Dataset.open(report["data"]["path"])
    model, nodes = load_model(tmp_path / "model.pt"), ds.split["test"]
    scores = evaluate.exact_scores(model, FeatureStore(ds), ds.graph, nodes)
    assert float((scores.argmax(1) == ds.y[nodes]).double().mean()) == report["test_acc"]

    theirs = PyGGraphSAGE(model.shape["in_dim"], 16, 2, ds.num_classes)
    theirs.load_state_dict(content["model"])
    x = (FeatureStore(ds)[None, "x", None] - content["normalize"]["mean"]) / content["normalize"]["scale"]
    graph = ds.graph
    dst = np.repeat(np.arange(ds.num_nodes), np.diff(graph.indptr))
    with torch.no_grad():
        wanted = theirs.eval()(x, torch.from_numpy(np.stack([graph.indices, dst]).astype(np.int64)))
    torch.testing.assert_close(scores, wanted[nodes], rtol=1e-4, atol=1e-4)


def test_test_is_sampled_where_memory_is_short(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_module, "exact_bytes", lambda *_: 1 << 60)
    report = run(root, tmp_path)
    assert report["inference"] == "sampled"
    assert "test: by sampling, because hidden states of all nodes take" in capsys.readouterr().out
    assert 0 < report["test_acc"] < 1


def make_dataset(path: Path, **changes: Any) -> list[str]:
    """A data set of 60 nodes, and the flags that train on it."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "edge_index": rng.integers(0, 60, (2, 300)),
        "x": rng.standard_normal((60, 4)).astype(np.float32),
        "y": np.arange(60) % 3,
        "split": {"train": np.arange(30), "val": np.arange(30, 45), "test": np.arange(45, 60)},
    }
    Dataset.from_arrays(path, **{**arrays, **changes})
    return ["train", "--dataset", str(path), "--epochs", "2", "--hidden", "8", "--fanout", "3,3"]


def test_unlabelled_nodes_are_not_evaluated(tmp_path: Path) -> None:
    y = np.arange(60) % 3
    y[[31, 50, 51]] = -1
    args = make_dataset(tmp_path / "ds", y=y)
    assert main([*args, "--report", str(tmp_path / "r.json")]) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["data"]["num_labelled"] == {"train": 30, "val": 14, "test": 13}
    for accuracy, count in ((report["epochs"][0]["val_acc"], 14), (report["test_acc"], 13)):
        assert round(accuracy * count) == pytest.approx(accuracy * count)


def test_data_set_without_val_and_test_trains(tmp_path: Path) -> None:
    args = make_dataset(tmp_path / "ds", split={"train": np.arange(30)})
    assert main([*args, "--report", str(tmp_path / "r.json"), "--save", str(tmp_path / "m.pt")]) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert [epoch["val_acc"] for epoch in report["epochs"]] == [None, None]
    assert report["test_acc"] is None
    assert torch.load(tmp_path / "m.pt", weights_only=True)["epoch"] == 2


@pytest.mark.parametrize("shape", [(60,), (60, 0)])
def test_features_of_one_number_or_none_train(tmp_path: Path, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    assert main(make_dataset(tmp_path / "ds", x=x)) == 0


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64])
def test_features_of_other_dtypes_train(tmp_path: Path, dtype: type) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (60, 2, 3)).astype(dtype)
    assert main(make_dataset(tmp_path / "ds", x=x)) == 0


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.rstrip().splitlines()[-1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "has no labels: training needs y"),
        ({"x": None, "num_nodes": 60}, "has no features x"),
        (
            {"split": {"val": np.arange(9)}},
            "train split (splits and their nodes: val 9)",
        ),
        ({"split": {"train": np.arange(0)}}, "no labelled node in its train split"),
        ({"x": np.zeros((60, 2), np.complex64)}, "are complex, the model takes real numbers"),
    ],
)
def test_data_set_that_cannot_be_trained_on_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    assert main(make_dataset(tmp_path / "ds", **changes)) != 0
    assert message in last_line(capsys)


def test_loss_that_is_no_number_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.full((60, 4), np.nan, np.float32)
    args = make_dataset(tmp_path / "ds", x=x)
    assert main([*args, "--report", str(tmp_path / "r.json")]) == 1
    assert "the loss is nan in epoch 1, minibatch 0: lower --lr" in last_line(capsys)
    assert json.loads((tmp_path / "r.json").read_text())["epochs"] == []


def test_interrupted_run_keeps_what_was_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train_epoch = loop.train_epoch

    def interrupted(*args: Any) -> loop.Epoch:
        if args[0].epoch == 2:
            raise KeyboardInterrupt
        return train_epoch(*args)

    monkeypatch.setattr(loop, "train_epoch", interrupted)
    args = make_dataset(tmp_path / "ds")
    assert main(args) == 130
    assert last_line(capsys) == "gnn-ibp: interrupted; nothing was complete"
    report, weights = tmp_path / "r.json", tmp_path / "m.pt"
    assert main([*args, "--report", str(report), "--save", str(weights)]) == 130
    assert last_line(capsys) == (
        f"gnn-ibp: interrupted; what was done until the end of epoch 1 is told in {report}; the best weights "
        f"until then are in {weights}"
    )
    folder = tmp_path / "checkpoints"
    assert main([*args, "--checkpoint", str(folder), "--checkpoint-every", "1"]) == 130
    assert re.search(
        rf"interrupted; --resume goes on from epoch 1 after \d+ minibatches, in {folder}$", last_line(capsys)
    )
    assert [epoch["epoch"] for epoch in json.loads((tmp_path / "r.json").read_text())["epochs"]] == [1]
    assert torch.load(tmp_path / "m.pt", weights_only=True)["epoch"] == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("9 bytes of cuda:0's memory cannot be had, 5 are free"),
        RuntimeError(
            "[enforce fail at alloc.cpp] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"
        ),
        torch.cuda.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 1.00 GiB. If "
            "reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF."
        ),
    ],
)
def test_memory_that_is_short_is_told_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(loop, "train_epoch", fail)
    assert main(make_dataset(tmp_path / "ds")) == 1
    line = last_line(capsys)
    assert line.startswith(f"gnn-ibp: out of memory ({str(error)[:20]}")
    assert line.endswith("ask for less with --cache-bytes, --batch-size, --fanout or --hidden")
    assert "PYTORCH" not in line


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(torch, "save", fail)
    args = make_dataset(tmp_path / "ds")
    assert main([*args, "--save", str(tmp_path / "m.pt")]) == 1
    assert "the disk is full" in last_line(capsys)


def test_weights_that_do_not_fit_on_the_disk_are_told_and_leave_nothing(tmp_path: Path) -> None:
    args = [*make_dataset(tmp_path / "ds"), "--save", str(tmp_path / "m.pt"), "--hidden", "256"]
    script = (
        "import resource, signal, sys; from gnn_ibp.train.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the disk is full, or a quota" in done.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["ds"]


def test_warnings_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*make_dataset(tmp_path / "ds"), "--cache-bytes", "1"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("gnn-ibp: warning: a cache of 1 bytes holds no row")


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["tran"], 2, "unknown command 'tran', did you mean 'train'?"),
        (["train", "--dataset", "corra"], 2, "did you mean 'cora'?"),
        (["train", "--epocs", "1"], 2, "did you mean '--epochs'?"),
        (["train", "--fanout", "99999999999999999999"], 2, "--fanout"),
        (["train", "--threads", "100000"], 2, "--threads is 100000, it must be at most 1024"),
        (["train", "--hot-set", "nowhere.npy"], 2, "--hot-set is nowhere.npy"),
        (["convert", "cora"], 2, "OUT"),
        (["info", "nowhere"], 1, "nowhere"),
        (["verify", "nowhere"], 1, "nowhere"),
    ],
)
def test_error_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], status: int, message: str
) -> None:
    assert main(args) == status
    line = last_line(capsys)
    assert line.startswith("gnn-ibp: ")
    assert message in line


def test_traceback_is_shown_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["tran"])
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("GNN_IBP_TRACEBACK", "1")
    main(["tran"])
    assert "Traceback" in capsys.readouterr().err


def test_help_and_version_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "usage: gnn-ibp COMMAND" in capsys.readouterr().out
    assert main(["--version"]) == 0


def test_run_py_without_an_installation_says_what_to_type() -> None:
    script = Path(__file__).parents[2] / "train" / "run.py"
    result = subprocess.run([sys.executable, "-S", "-E", script], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "type `make train`" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children can be interrupted, also where this process, started in the background, cannot."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("start", [["-c", "from gnn_ibp.train.start import main; main()"], ["train/run.py"]])
def test_interrupt_while_torch_is_loaded_ends_in_one_line(tmp_path: Path, start: list[str]) -> None:
    """The `torch` of this test's path interrupts its process as it is imported."""
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    checkout = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, *start],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(checkout)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "gnn-ibp: interrupted before anything was done\n"
