"""Resume: where a run with --checkpoint goes on, or why it does not."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from gnn_ibp.errors import SettingsError
from gnn_ibp.train.checkpoint_folder import CheckpointFolder, Place
from gnn_ibp.train.config import Config
from gnn_ibp.train.same_run import check_same_run


@contextlib.contextmanager
def checkpoint_folder(config: Config) -> Iterator[CheckpointFolder | None]:
    """That of --checkpoint, locked; None without. Raises SettingsError for checkpoints without --resume."""
    if config.checkpoint is None:
        yield None
        return
    with CheckpointFolder(config.checkpoint) as folder:
        places = folder.places()
        if places and not config.resume:
            raise SettingsError(
                f"--checkpoint {folder.path} holds checkpoints, the last of {places[0]}: add --resume to go "
                "on from there, or name another folder, or remove them"
            )
        yield folder


def find_checkpoint(folder: CheckpointFolder, config: Config, run: Mapping[str, Any]) -> Place | None:
    """The checkpoint to go on from, None to start from the beginning; says which it is.

    run: as `run_facts` gives it. Raises SettingsError for a checkpoint of another run.
    """
    if not config.resume:
        return None
    found = folder.newest(say=warnings.warn)
    if found is None:
        print(
            f"resume: there is no checkpoint in {folder.path}, the run starts from the beginning", flush=True
        )
        return None
    place, state = found
    check_same_run(run, state["run"], folder.path)
    if place.epoch > config.epochs:
        raise SettingsError(
            f"--epochs is {config.epochs}, the checkpoint is of {place}: give at least {place.epoch}"
        )
    print(f"resume: going on from {folder.path / place.file_name}", flush=True)
    return place
