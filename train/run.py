"""A training run, from the settings to the report: what happens, from top to bottom."""

import math
import sys
import time
from pathlib import Path
from typing import Any

try:
    if __name__ == "__main__":
        from gnn_ibp.train.start import main

        sys.exit(main(["train", *sys.argv[1:]]))
    import numpy as np
    import torch
    from torch import Tensor

    from gnn_ibp import report
    from gnn_ibp.converters.prepare import prepare
    from gnn_ibp.cuda import Cuda
    from gnn_ibp.dataset import Dataset
    from gnn_ibp.dataset_parts import ConversionSettings
    from gnn_ibp.errors import SettingsError
    from gnn_ibp.feature_store import FeatureStore
    from gnn_ibp.hotset import degree_hot_set, presample
    from gnn_ibp.loader import Loader
    from gnn_ibp.npy import read_npy
    from gnn_ibp.samplers import NeighborSampler
    from gnn_ibp.train import machine
    from gnn_ibp.train.checkpoint import save_model
    from gnn_ibp.train.config import Config
    from gnn_ibp.train.evaluate import exact_accuracy, fits_in_memory, free_bytes, sampled_accuracy
    from gnn_ibp.train.facts import cache_facts, data_facts
    from gnn_ibp.train.loop import fit
    from gnn_ibp.train.memory import PeakMemory
    from gnn_ibp.train.model import GraphSAGE
    from gnn_ibp.train.nodes import labelled_nodes
    from gnn_ibp.train.normalize import Normalize
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed for {sys.executable}: type `make train` in the checkout")


def train(config: Config, cuda: Cuda | None = None) -> dict[str, Any]:
    """Makes the data set where it is missing, trains, tests, and returns the report.

    What is known by then is written to `config.report` also when the run fails or is interrupted.
    cuda: the device to train on; None opens the one that `config.device` names.
    """
    config.check_outputs()
    cuda = cuda or machine.open_device(config.device)
    if cuda is None:
        config.check_cpu()
    settings = {
        **config.settings(),
        **machine.device_facts(cuda),
        **machine.fix_threads(config.threads),
        **machine.versions(),
    }
    run: dict[str, Any] = {"settings": settings, "epochs": [], "test_acc": None, "inference": None}
    with PeakMemory() as memory:
        try:
            _train(config, cuda, run, memory)
        finally:
            run["peak_rss_bytes"], run["peak_anon_bytes"] = memory.rss_bytes, memory.anon_bytes
            run["peak_device_bytes"] = cuda.peak_bytes() if cuda else None
            if config.report:
                report.write_json(config.report, run)
    print(report.run_text(run))
    return run


def _train(config: Config, cuda: Cuda | None, run: dict[str, Any], memory: PeakMemory) -> None:
    print(report.settings_text(run["settings"]), flush=True)
    torch.manual_seed(config.seed)
    settings = ConversionSettings(undirected=config.undirected, dedup=config.dedup)
    ds = prepare(
        config.dataset,
        config.root,
        raw_root=config.raw_root,
        num_classes=config.num_classes,
        settings=settings,
        say=print,
    )
    nodes = labelled_nodes(ds)
    sampler = NeighborSampler(ds.graph, list(config.fanout), seed=config.seed)
    store = FeatureStore(
        ds,
        device=cuda or "cpu",
        cache_bytes=0 if config.no_cache else config.cache_bytes,
        host_bytes=0 if config.no_cache else config.host_bytes,
        hot_set=_hot_set(config, ds, sampler, nodes["train"]),
        raw=config.raw,
    )
    normalize = _normalize(config, ds)
    model = GraphSAGE(
        in_dim=math.prod(ds.features["x"].row_shape),
        hidden=config.hidden,
        num_layers=len(config.fanout),
        num_classes=ds.num_classes,
        dropout=config.dropout,
        normalize=normalize,
    ).to(store.device)
    run["settings"]["normalize"] = normalize.kind
    run["data"], run["caches"] = data_facts(ds, nodes), cache_facts(store)
    print(report.data_text(run["data"], run["caches"]), flush=True)

    loaders = {name: _loader(config, store, sampler, name, ids) for name, ids in nodes.items() if len(ids)}
    run["settings"]["prefetch"] = loaders["train"].prefetch
    for epoch in fit(model, loaders["train"], loaders.get("val"), config):
        run["epochs"].append({**epoch.as_dict(), "peak_anon_bytes": memory.anon_bytes})
        print(report.epoch_text(run["epochs"][-1], config.epochs), flush=True)
        if config.save and epoch.best:
            save_model(config.save, model, run["settings"], epoch=epoch.epoch, val_acc=epoch.val_acc)

    if "test" in loaders:
        began = time.perf_counter()
        exact = fits_in_memory(model, ds.num_nodes, free_bytes(store))
        run["inference"] = "exact" if exact else "sampled"
        if exact:
            assert ds.y is not None, "labelled_nodes looked"
            run["test_acc"] = exact_accuracy(model, store, ds.graph, nodes["test"], ds.y)
        else:
            run["test_acc"] = sampled_accuracy(model, loaders["test"], "test")
        run["test_s"] = time.perf_counter() - began
    run["sources"] = store.stats()


def _hot_set(config: Config, ds: Dataset, sampler: NeighborSampler, train_ids: Tensor) -> Any:
    """Ids for the cache, hottest first, or None for none."""
    if config.no_cache or config.hot_set == "none":
        return None
    if config.hot_set == "degree":
        return degree_hot_set(ds.graph)
    if config.hot_set == "presample":  # what it never saw comes after, where there is room
        visited = presample(sampler, train_ids, batch_size=config.batch_size)
        return np.concatenate([visited, degree_hot_set(ds.graph)])
    return read_npy(Path(config.hot_set), (np.int64, np.int32))


def _normalize(config: Config, ds: Dataset) -> Normalize:
    """What --normalize means for the features x: auto is standard for dense floats, none otherwise."""
    x, kind = ds.features["x"], config.normalize
    if kind == "auto":
        kind = "standard" if x.is_dense_float else "none"
    if kind != "standard":
        return Normalize(kind)
    if x.statistics is None:
        raise SettingsError(f"--normalize standard needs float features, x is {x.dtype}: say row or none")
    return Normalize("standard", x.statistics.mean, x.statistics.scale)


def _loader(config: Config, store: FeatureStore, sampler: NeighborSampler, name: str, ids: Tensor) -> Loader:
    return Loader(
        store,
        sampler,
        ids,
        config.batch_size,
        shuffle=name == "train",
        seed=config.seed,
        prefetch=config.prefetch,
        num_threads=config.threads,
        max_batches=config.max_batches if name == "train" else None,
    )
