"""Checkpoints: when a training writes them."""

import time
import warnings
from collections.abc import Mapping
from typing import Any

from gnn_ibp.loader import Loader
from gnn_ibp.train.checkpoint_folder import CheckpointFolder, Place
from gnn_ibp.train.training import Training

EVERY_S = 300.0
"""Seconds between two checkpoints where no number of minibatches is given."""


class Checkpoints:
    """Writes the state of `training` after every `every` minibatches; None: when five minutes have passed.

    loader: of the minibatches that are trained on.
    run: plain types that tell the run from others; they stand in the checkpoint as "run".
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        every: int | None,
        training: Training,
        loader: Loader,
        run: Mapping[str, Any],
    ) -> None:
        self._folder = folder
        self._every = every
        self._training = training
        self._loader = loader
        self._run = dict(run)
        self._written = Place(training.epoch, training.batch)
        self._wait()

    def due(self, batch: int) -> bool:
        """Whether one is to be written before minibatch `batch` of the epoch under way."""
        if self._every is None:
            return time.monotonic() - self._time_s >= EVERY_S
        return self._step(batch) - self._last_step >= self._every

    def write(self) -> None:
        """Writes one, unless there is one of this moment. Where that fails, a warning says why: the one
        before it stays, and the training goes on."""
        place = Place(self._training.epoch, self._training.batch)
        if place == self._written:
            return
        began = time.perf_counter()
        state = {"run": self._run, **self._training.state(self._loader.store)}
        try:
            self._folder.write(place, state)
            self._written = place
        except OSError as error:
            warnings.warn(
                f"the checkpoint of {place} was not written: {error}; the training goes on, and the "
                "checkpoint before it stays",
                stacklevel=2,
            )
        self._training.add_seconds({"checkpoint": time.perf_counter() - began})
        self._wait()

    def _wait(self) -> None:
        """From now on until the next one is due."""
        self._last_step, self._time_s = self._step(self._training.batch), time.monotonic()

    def _step(self, batch: int) -> int:
        """Minibatches of the whole training before `batch` of the epoch under way."""
        return (self._training.epoch - 1) * len(self._loader) + batch
