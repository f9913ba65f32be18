"""Whether a checkpoint is one of this run: what has to be the same, and what may differ."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import SettingsError

CHANGES_NO_RESULT = {
    *("config", "root", "raw_root", "epochs", "save", "report", "checkpoint", "checkpoint_every", "resume"),
    *("cache_bytes", "host_bytes", "memory_budget", "hot_set", "no_cache", "raw", "threads", "prefetch"),
}
"""Settings that may differ. All others, those of later versions included, may not."""

OF_THE_DATA = {"dataset", "num_classes", "undirected", "dedup", "format"}
"""Settings whose result is compared instead: what the data set holds, wherever it lies and however stored."""

OF_THE_MACHINE = ("device_name", "torch_threads", "version", "torch_version", "python_version")
"""What nobody set, but sums may depend on in their last digits."""


def run_facts(settings: Mapping[str, Any], ds: Dataset) -> dict[str, Any]:
    """What a checkpoint keeps to be known again by: plain types. settings: as they are stored with a run."""
    data = {"path": str(ds.path), "fingerprint": ds.meta.fingerprint, "content": ds.meta.content}
    return {"settings": dict(settings), "data": data}


def check_same_run(now: Mapping[str, Any], then: Mapping[str, Any], folder: Path) -> None:
    """Compares this run with that of a checkpoint in `folder`, both as `run_facts` gives them.

    Raises SettingsError where they differ in what changes the results; warns where the machine is another.
    """
    differences = _differences(now["settings"], then["settings"])
    if not _same_data(now["data"], then["data"]):
        differences.append(
            f"the data set {now['data']['path']} holds other data than {then['data']['path']} did"
        )
    if differences:
        raise SettingsError(
            f"the checkpoints in {folder} are of another run: {'; '.join(differences)}: give what was given "
            "then, or name another folder for --checkpoint"
        )
    changed = [name for name in OF_THE_MACHINE if now["settings"].get(name) != then["settings"].get(name)]
    if changed:
        words = (
            f"{name} is {now['settings'].get(name)}, it was {then['settings'].get(name)}" for name in changed
        )
        warnings.warn(
            f"the run goes on elsewhere than it began: {'; '.join(words)}; the last digits of its results "
            "may be others than those of a run that was not interrupted",
            stacklevel=2,
        )


def _same_data(now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    """The same files, or files that hold the same in another row format."""
    same_content = now.get("content") is not None and now.get("content") == then.get("content")
    return same_content or now["fingerprint"] == then["fingerprint"]


def _differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    left_out = CHANGES_NO_RESULT | OF_THE_DATA | {*OF_THE_MACHINE}
    names = [name for name in {**now, **then} if name not in left_out]
    pairs = {name: (_plain(name, now.get(name)), _plain(name, then.get(name))) for name in names}
    return [
        f"--{name.replace('_', '-')} is {_word(a)}, it was {_word(b)}"
        for name, (a, b) in pairs.items()
        if a != b
    ]


def _plain(name: str, value: Any) -> Any:
    """Of a device the kind alone counts: cuda:0 and cuda:1 give the same results, where they are the same."""
    return str(value).partition(":")[0] if name == "device" else value


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
