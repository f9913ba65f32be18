"""A training run, from the settings to the report: what happens, from top to bottom."""

import math
import sys
import time
from collections.abc import Mapping
from typing import Any

try:
    if __name__ == "__main__":
        from gnn_ibp.train.start import main

        sys.exit(main(["train", *sys.argv[1:]]))
    import torch
    from torch import Tensor

    from gnn_ibp import report
    from gnn_ibp.budget import format_bytes, parse_bytes, used_memory
    from gnn_ibp.buffers import BufferPool
    from gnn_ibp.converters.prepare import prepare
    from gnn_ibp.cuda import Cuda
    from gnn_ibp.dataset import Dataset
    from gnn_ibp.errors import SettingsError
    from gnn_ibp.feature_store import FeatureStore
    from gnn_ibp.graph import Graph
    from gnn_ibp.loader import Loader, batches_held, default_prefetch
    from gnn_ibp.rows import AnyIds
    from gnn_ibp.samplers import NeighborSampler
    from gnn_ibp.train import machine
    from gnn_ibp.train.checkpoint_folder import CheckpointFolder
    from gnn_ibp.train.checkpoints import Checkpoints
    from gnn_ibp.train.config import Config
    from gnn_ibp.train.evaluate import exact_accuracy, exact_bytes, hidden_bytes, sampled_accuracy
    from gnn_ibp.train.facts import cache_facts, data_facts
    from gnn_ibp.train.hot_rows import hot_rows
    from gnn_ibp.train.loop import fit
    from gnn_ibp.train.memory import PeakMemory
    from gnn_ibp.train.memory_plan import MemoryPlan
    from gnn_ibp.train.model import GraphSAGE
    from gnn_ibp.train.needs import WatchedSampler
    from gnn_ibp.train.nodes import labelled_nodes
    from gnn_ibp.train.normalize import Normalize
    from gnn_ibp.train.planner import Planner
    from gnn_ibp.train.resume import checkpoint_folder, find_checkpoint
    from gnn_ibp.train.same_run import run_facts
    from gnn_ibp.train.saved_model import save_model
    from gnn_ibp.train.training import Training
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is not installed for {sys.executable}: type `make train` in the checkout")


def train(config: Config, cuda: Cuda | None = None) -> dict[str, Any]:
    """Makes the data set where it is missing, trains, tests, and returns the report.

    Once the training began, what is known is written to `config.report` also when the run fails or is
    interrupted; before that a report which is there stays.
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
    with checkpoint_folder(config) as folder, PeakMemory() as memory:
        try:
            _train(config, cuda, folder, run, memory)
        except KeyboardInterrupt as interrupt:
            _note_what_is_kept(interrupt, config, folder, run)
            raise
        finally:
            run["peak_rss_bytes"], run["peak_anon_bytes"] = memory.rss_bytes, memory.anon_bytes
            run["peak_device_bytes"] = cuda.peak_bytes() if cuda else None
            try:
                if "sources" in run:  # it came to its end
                    print(report.run_text(run), flush=True)
            finally:
                if config.report and "data" in run:
                    report.write_json(config.report, run)
    return run


def _note_what_is_kept(
    interrupt: KeyboardInterrupt, config: Config, folder: CheckpointFolder | None, run: dict[str, Any]
) -> None:
    """Adds notes on the outputs that hold what was complete."""
    epochs = run["epochs"]
    if folder and (places := folder.places()):
        interrupt.add_note(f"--resume goes on from {places[0]}, in {folder.path}")
    if epochs and config.report:
        interrupt.add_note(f"what was done until the end of epoch {len(epochs)} is told in {config.report}")
    first = run["resumed"][-1]["epoch"] if run.get("resumed") else 1  # of this process, which wrote no other
    if config.save and any(epoch["best"] and epoch["epoch"] >= first for epoch in epochs):
        interrupt.add_note(f"the best weights until then are in {config.save}")


def _train(
    config: Config,
    cuda: Cuda | None,
    folder: CheckpointFolder | None,
    run: dict[str, Any],
    memory: PeakMemory,
) -> None:
    print(report.settings_text(run["settings"]), flush=True)
    if cuda is None and config.precision == "bfloat16":
        machine.warn_without_bfloat16()
    torch.manual_seed(config.seed)
    budget = config.budget_bytes()
    ds = _dataset(config, budget)
    nodes = labelled_nodes(ds)
    normalize = _normalize(config, ds)
    run["settings"]["normalize"] = normalize.kind
    facts = run_facts(run["settings"], ds)
    place = find_checkpoint(folder, config, facts) if folder else None
    model = _model(config, ds, normalize)
    device_cache = parse_bytes(_device_bytes(config), cuda.free_bytes) if cuda else 0
    prefetch = default_prefetch(cuda is not None) if config.prefetch is None else config.prefetch
    run["settings"]["prefetch"] = prefetch
    planner = Planner(config, budget, ds, nodes, model, prefetch, cuda is not None, device_cache)
    _tell_plan(planner.plan, run)
    graph = ds.mapped_graph() if planner.plan.mapped else ds.graph
    sampler = NeighborSampler(graph, list(config.fanout), seed=config.seed)
    hot_set = _hot_set(config, planner, graph, sampler, nodes["train"], run)
    store = _filled_store(config, planner.plan, ds, hot_set, cuda, device_cache)
    del hot_set
    model = model.to(store.device)
    run["data"], run["caches"] = data_facts(ds, nodes), cache_facts(store)
    print(report.data_text(run["data"], run["caches"]), flush=True)

    buffers = BufferPool(batches_held(prefetch))
    loaders = {
        name: _loader(config, store, sampler, name, ids, prefetch, buffers)
        for name, ids in nodes.items()
        if len(ids)
    }
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    training = Training(model, optimizer)
    if folder and place:
        training.restore(folder.read(place))
    run["epochs"], run["resumed"] = training.epochs, training.resumed
    _fit(config, training, loaders, folder, facts, run, memory)

    if "test" in loaders:
        model.release()
        buffers.clear()
        _test(model, store, graph, nodes["test"], loaders["test"], budget, run)
    run["sources"] = training.sources(store)


def _dataset(config: Config, budget: int) -> Dataset:
    """The data set, made where it is missing, with its raw twin where the run reads that."""
    ds = prepare(
        config.dataset,
        config.root,
        raw_root=config.raw_root,
        num_classes=config.num_classes,
        settings=config.conversion(),
        memory_budget=budget,
        say=print,
    )
    if config.raw:
        ds.raw_twin()
    return ds


def _hot_set(
    config: Config,
    planner: Planner,
    graph: Graph,
    sampler: NeighborSampler,
    train: Tensor,
    run: dict[str, Any],
) -> AnyIds | None:
    """The rows for the cache, hottest first. Plans anew where larger minibatches were drawn meanwhile."""
    watched = WatchedSampler(sampler)
    hot_set = hot_rows(config, graph, watched, train, planner.plan.hot_rows)
    if planner.plan_again(watched.shape):
        print("some minibatches are larger than those that were measured; planned anew:")
        _tell_plan(planner.plan, run)
    return None if hot_set is None else hot_set[: planner.plan.hot_rows]


def _filled_store(
    config: Config,
    plan: MemoryPlan,
    ds: Dataset,
    hot_set: AnyIds | None,
    cuda: Cuda | None,
    device_cache: int,
) -> FeatureStore:
    """The feature store, its cache filled with the hot rows."""
    store = FeatureStore(
        ds,
        device=cuda or "cpu",
        cache_bytes=device_cache if cuda else plan.cache,
        host_bytes=plan.cache if cuda else 0,
        hot_set=hot_set,
        raw=config.raw,
    )
    store.forget_hot_set()
    return store


def _model(config: Config, ds: Dataset, normalize: Normalize) -> GraphSAGE:
    return GraphSAGE(
        in_dim=math.prod(ds.features["x"].row_shape),
        hidden=config.hidden,
        num_layers=len(config.fanout),
        num_classes=ds.num_classes,
        dropout=config.dropout,
        normalize=normalize,
        precision=config.precision,
    )


def _test(
    model: GraphSAGE,
    store: FeatureStore,
    graph: Graph,
    nodes: Tensor,
    loader: Loader,
    budget: int,
    run: dict[str, Any],
) -> None:
    """The accuracy on the test nodes: exact where there is memory for it, else by sampling as in training."""
    began = time.perf_counter()
    why_sampled = _why_sampled(model, store, graph, nodes, budget)
    run["inference"] = "sampled" if why_sampled else "exact"
    if why_sampled:
        print(f"test: by sampling, because {why_sampled}", flush=True)
        run["test_acc"] = sampled_accuracy(model, loader, "test")
    else:
        labels = store.dataset.y
        assert labels is not None, "labelled_nodes looked"
        run["test_acc"] = exact_accuracy(model, store, graph, nodes, labels)
    run["test_s"] = time.perf_counter() - began


def _fit(
    config: Config,
    training: Training,
    loaders: Mapping[str, Loader],
    folder: CheckpointFolder | None,
    facts: Mapping[str, Any],
    run: dict[str, Any],
    memory: PeakMemory,
) -> None:
    """Trains to the end. The best weights are in the model then, and in the file that --save names."""
    first, loader = training.epoch, loaders["train"]
    checkpoints = Checkpoints(folder, config.checkpoint_every, training, loader, facts) if folder else None
    for epoch in fit(training, loader, loaders.get("val"), config, checkpoints):
        run["epochs"].append({**epoch.as_dict(), "peak_anon_bytes": memory.anon_bytes})
        print(report.epoch_text(run["epochs"][-1], config.epochs), flush=True)
        if config.save and epoch.best:
            save_model(config.save, training.model, run["settings"], epoch=epoch.epoch, val_acc=epoch.val_acc)
    best = report.best_epoch(run["epochs"])
    if config.save and best["epoch"] < first:  # found by a process before this one
        save_model(config.save, training.model, run["settings"], epoch=best["epoch"], val_acc=best["val_acc"])


def _tell_plan(plan: MemoryPlan, run: dict[str, Any]) -> None:
    run["memory"] = plan.as_dict()
    print(report.memory_text(run["memory"]), flush=True)


def _device_bytes(config: Config) -> int | str:
    """For the cache in a device's memory."""
    return 0 if config.no_cache else config.cache_bytes


def _why_sampled(
    model: GraphSAGE, store: FeatureStore, graph: Graph, nodes: Tensor, budget: int
) -> str | None:
    """Why the test cannot be exact; None where it can: its states fit into half of a device's free memory,
    or into what is left of the budget."""
    if store.cuda:
        needed, free = hidden_bytes(model, graph.num_nodes), store.cuda.free_bytes() // 2
    else:
        needed, free = exact_bytes(model, graph, nodes), budget - used_memory()
    if needed <= free:
        return None
    where = "may be used on the device" if store.cuda else "are left of the memory budget"
    return f"hidden states of all nodes take {format_bytes(needed)}, {format_bytes(max(0, free))} {where}"


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


def _loader(
    config: Config,
    store: FeatureStore,
    sampler: NeighborSampler,
    name: str,
    ids: Tensor,
    prefetch: int,
    buffers: BufferPool,
) -> Loader:
    return Loader(
        store,
        sampler,
        ids,
        config.batch_size,
        shuffle=name == "train",
        seed=config.seed,
        prefetch=prefetch,
        num_threads=config.threads,
        max_batches=config.max_batches if name == "train" else None,
        buffers=buffers,
    )
