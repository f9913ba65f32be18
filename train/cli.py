"""gnn-ibp: the command line. An error ends in one line on stderr that says what and what to do."""

import errno
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
from gnn_ibp.train.flags import parse

USAGE = f"""gnn-ibp {gnn_ibp.__version__}: train graph neural networks from losslessly compressed features

usage: gnn-ibp COMMAND [--help]

  train     make the data set where it is missing, and train GraphSAGE on it
  convert   write a data set's folder from a name, npz:PATH, or another data set's folder
  info      show what a data set or a feature file holds, and how much is saved
  verify    read a data set or a feature file whole and compare its checksums
"""

TRACEBACK = "GNN_IBP_TRACEBACK"
"""Environment variable: 1 shows where in the program an error came from."""

TORCH_OUT_OF_MEMORY = ("can't allocate memory", "out of memory")
"""What torch says, in a RuntimeError, of the CPU's memory and of a GPU's."""

FAILED, BAD_SETTINGS, INTERRUPTED = 1, 2, 130


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
    chunk_bits: Annotated[Literal[8, 16, 32, 64] | None, tyro.conf.arg(metavar="8|16|32|64")] = None
    """Width of a chunk; None picks the one that saves most."""
    threshold: Annotated[str | None, tyro.conf.arg(metavar="T")] = None
    """The paper's rule instead of ours: 0.50 to 0.99, or sweep."""
    layout: Literal["condensed", "in-place"] = "condensed"
    """In place every row keeps its full size, and no space is saved."""
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
            return _run(args)
    except KeyboardInterrupt as error:
        return _failed(error, "interrupted; what was complete is kept", INTERRUPTED)
    except SettingsError as error:
        return _failed(error, str(error), BAD_SETTINGS)
    except ModuleNotFoundError as error:
        return _failed(error, f"{error.name} is not installed for {sys.executable}: type `make setup`")
    except (OSError, MemoryError, ArithmeticError, LookupError, ValueError, TypeError, RuntimeError) as error:
        return _failed(error, _message(error))


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


def _failed(error: BaseException, message: str, status: int = FAILED) -> int:
    if os.environ.get(TRACEBACK) == "1":
        traceback.print_exception(error)
    print(f"gnn-ibp: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return status


def _show_warning(message: Warning | str, *_: object) -> None:
    print(f"gnn-ibp: warning: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        where = f" for {error.filename}" if error.filename else ""
        return (
            f"the disk is full, or a quota{where}: free some space, or choose another folder "
            "(--root, --save, --report)"
        )
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError) or any(words in str(error) for words in TORCH_OUT_OF_MEMORY):
        what = ". ".join(str(error).split(". ")[:2])  # torch goes on about its allocator
        return f"out of memory ({what}): ask for less with --cache-bytes, --batch-size, --fanout or --hidden"
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error) or f"{type(error).__name__} (set {TRACEBACK}=1 to see where)"


if __name__ == "__main__":
    sys.exit(main())
