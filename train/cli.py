"""gnn-ibp: the command line. An error ends in one line on stderr that says what and what to do."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

import gnn_ibp
from gnn_ibp.errors import SettingsError, unknown_name
from gnn_ibp.train.config import config_from_args
from gnn_ibp.train.error_line import TRACEBACK, error_line
from gnn_ibp.train.flags import parse

USAGE = f"""gnn-ibp {gnn_ibp.__version__}: train graph neural networks from losslessly compressed features

usage: gnn-ibp COMMAND [--help]

  train     make the data set where it is missing, and train GraphSAGE on it
  convert   write a data set's folder from a name, npz:PATH, or another data set's folder
  info      show what a data set or a feature file holds, and how much is saved
  verify    read a data set or a feature file whole and compare its checksums
"""

FAILED, BAD_SETTINGS, INTERRUPTED = 1, 2, 130

ERRORS = (
    ArithmeticError,
    LookupError,
    MemoryError,
    ModuleNotFoundError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Those that end in one line."""


@dataclass(frozen=True)
class ConvertFlags:
    """Write a data set's folder."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SOURCE")]
    """A data set's name, npz:PATH, or the folder of a data set, which is then encoded again."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """The new folder."""
    raw_root: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder in which raw files lie, or are downloaded into; None means the folder raw beside OUT."""
    num_classes: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Which labels of IGB: 19 or 2983; None means 19."""
    format: Annotated[str | None, tyro.conf.arg(metavar="auto|1|2")] = None
    """Version of the row format; auto takes the one that saves more, for each feature. None means auto; for a
    folder, what it was converted with."""
    chunk_bits: Annotated[Literal[8, 16, 32, 64] | None, tyro.conf.arg(metavar="8|16|32|64")] = None
    """Width of a chunk, in row format 1; it has to divide rows; None picks the one that saves most."""
    threshold: Annotated[str | None, tyro.conf.arg(metavar="T")] = None
    """The paper's rule instead of ours, in row format 1: 0.50 to 0.99, or sweep."""
    layout: Literal["condensed", "in-place"] = "condensed"
    """In place, in row format 1, every row keeps its full size, and no space is saved."""
    align: Annotated[int | None, tyro.conf.arg(metavar="BYTES")] = None
    """Rows begin at multiples of so many bytes; None means the least that is possible."""
    undirected: bool = False
    """Add the reverse of every edge; repeated edges are removed then."""
    dedup: bool = False
    """Remove repeated edges."""
    threads: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Threads; None means one per processor."""
    memory_budget: Annotated[str | None, tyro.conf.arg(metavar="SIZE")] = None
    """Memory of the whole program, such as 4GiB; None means most of what is free."""


@dataclass(frozen=True)
class PathFlags:
    """Look at a data set's folder or at one feature file."""

    path: tyro.conf.Positional[Path]
    """The folder or file."""


def main(args: Sequence[str] | None = None) -> int:
    """Runs a command. Returns 0, 1 after an error, 2 for settings that do not fit, 130 after Ctrl-C."""
    args = sys.argv[1:] if args is None else args
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            status = _run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt as error:
        return _failed(error, args, INTERRUPTED)
    except SettingsError as error:
        return _failed(error, args, BAD_SETTINGS)
    except ERRORS as error:
        return _failed(error, args, FAILED)


def _run(args: Sequence[str]) -> int:
    command, rest = (args[0], args[1:]) if args else ("--help", [])
    if command in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if command == "--version":
        print(gnn_ibp.__version__)
        return 0
    if command not in COMMANDS:
        raise SettingsError(unknown_name("command", command, COMMANDS))
    return COMMANDS[command](rest)


def _train(args: Sequence[str]) -> int:
    config = config_from_args(args)
    from gnn_ibp.train.run import train

    train(config)
    return 0


def _convert(args: Sequence[str]) -> int:
    flags = parse(ConvertFlags, args, "gnn-ibp convert")
    from gnn_ibp.train.commands import convert

    return convert(**vars(flags))


def _info(args: Sequence[str]) -> int:
    flags = parse(PathFlags, args, "gnn-ibp info")
    from gnn_ibp.train.commands import info

    return info(flags.path)


def _verify(args: Sequence[str]) -> int:
    flags = parse(PathFlags, args, "gnn-ibp verify")
    from gnn_ibp.train.commands import verify

    status = verify(flags.path)
    if status:
        print(f"gnn-ibp: {flags.path} is damaged: copy or convert it again", file=sys.stderr)
    return status


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "train": _train,
    "convert": _convert,
    "info": _info,
    "verify": _verify,
}


def _failed(error: BaseException, args: Sequence[str], status: int) -> int:
    if os.environ.get(TRACEBACK) == "1":
        traceback.print_exception(error)
    _give_up_unwritable_output()
    print(f"gnn-ibp: {error_line(error, args[0] if args else '')}", file=sys.stderr, flush=True)
    return status


def _give_up_unwritable_output() -> None:
    """Python itself would try once more at its end, and say so in lines of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"gnn-ibp: warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
