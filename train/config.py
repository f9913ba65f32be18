"""Config: the settings of a training run, from the command line and TOML files.

The command line beats `--config FILE.toml`, which beats `configs/NAME.toml` of the data set, which beats the
defaults below. In a file the settings are written as here or with dashes: `batch-size = 512`.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import gnn_ibp
from gnn_ibp.budget import free_memory, parse_bytes
from gnn_ibp.conversion.dataset_parts import ConversionSettings, parse_format
from gnn_ibp.converters.sources import config_name
from gnn_ibp.dataset_meta import NAME as META
from gnn_ibp.errors import SettingsError
from gnn_ibp.train.flags import check_flags, parse
from gnn_ibp.train.precision import Precision

CONFIGS = Path(gnn_ibp.__file__).parent / "configs"
PROG = "gnn-ibp train"
MAX_THREADS = 1024
AUTO_PERCENT = 80
DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]+)?")


def _fanout(words: list[str]) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in words[0].split(","))
    except ValueError:
        raise ValueError(f"{words[0]!r} is no list of whole numbers such as 15,10,5") from None


Fanout = Annotated[
    tuple[int, ...],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="N,N,N",
        instance_from_str=_fanout,
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [",".join(map(str, value))],
    ),
]
Size = Annotated[str, tyro.conf.arg(metavar="SIZE")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]
Number = Annotated[int | None, tyro.conf.arg(metavar="N")]
Switch = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class Config:
    """Train GraphSAGE from a compressed feature store.

    SIZE is written 512MiB, 4GiB, 0, or auto: what the memory budget leaves, and half of a GPU's free memory.
    """

    dataset: str = "synthetic"
    """Name of the data set: synthetic, synthetic:NODES, npz:PATH, cora, ogbn-papers100M, ..."""
    root: Path = Path("data")
    """Folder in which data sets lie; one that is missing is made there first."""
    raw_root: Folder = None
    """Folder in which raw files lie, or are downloaded into; None means ROOT/raw."""
    num_classes: Number = None
    """Which labels of IGB: 19 or 2983; None means 19."""
    config: File = None
    """TOML file with settings."""
    device: str = "auto"
    """Where the model trains: auto, cpu, cuda, or cuda:N; auto takes a GPU where one can be used."""
    cache_bytes: Size = "auto"
    """Memory for the cache on the training device, its tables included."""
    host_bytes: Size = "auto"
    """Page-locked memory for rows behind a GPU's cache; there is none of it on the CPU."""
    memory_budget: Size = "auto"
    """Memory for the whole process, files that the system caches left out; auto: 80 % of what is free."""
    hot_set: str = "presample"
    """Which rows are cached: presample, degree, none, or FILE.npy with ids, hottest first."""
    epochs: int = 10
    """Passes over the train nodes."""
    batch_size: int = 1024
    """Seed nodes per minibatch."""
    fanout: Fanout = (15, 10, 5)
    """Neighbors drawn per node, from the seeds outward; one layer per number, -1 takes all."""
    hidden: int = 256
    """Width of the hidden layers."""
    dropout: float = 0.5
    """Share of hidden values dropped while training."""
    lr: float = 0.003
    """Adam's learning rate."""
    weight_decay: float = 0.0
    """Adam's L2 penalty."""
    normalize: Literal["auto", "standard", "row", "none"] = "auto"
    """Fixed step before the model: standard by column, row by L1 norm; auto: standard for dense floats."""
    precision: Precision = "float32"
    """Of matrix products, in training and evaluation; weights and sums are float32."""
    seed: int = 0
    """Of weights, minibatches and dropout."""
    threads: Number = None
    """Threads that sample and fetch, None means one per processor; results do not depend on it."""
    prefetch: Number = None
    """Minibatches prepared ahead, None means 2, on a GPU up to 8; results do not depend on it."""
    undirected: bool = False
    """Add the reverse of every edge when the data set is made."""
    dedup: bool = False
    """Remove repeated edges when the data set is made."""
    format: Annotated[str | None, tyro.conf.arg(metavar="auto|1|2")] = None
    """Version of the row format when the data set is made; auto takes the one that saves more. None means
    auto; for a data set that is there, what it was made with."""
    eval_every: int = 1
    """Epochs between validations."""
    no_cache: Switch = False
    """Cache nothing."""
    raw: Switch = False
    """Read the features from a file that stores every row raw."""
    checkpoint: Folder = None
    """Write checkpoints to this folder, from which a killed run goes on."""
    checkpoint_every: Number = None
    """Minibatches between checkpoints; None means 5 minutes."""
    resume: Switch = False
    """Go on from the last checkpoint; the result is that of a run that was not interrupted."""
    save: File = None
    """Write the best weights, with all that is needed to predict, to this file."""
    report: File = None
    """Write the report to this JSON file."""
    max_batches: Number = None
    """End every epoch after so many minibatches."""

    def __post_init__(self) -> None:
        """Raises SettingsError for values out of range."""
        counts = ("epochs", "batch_size", "hidden", "eval_every", "threads", "max_batches", "num_classes")
        for name in (*counts, "checkpoint_every"):
            value = getattr(self, name)
            _require(value is None or value >= 1, name, value, "a whole number from 1 up")
        _require((self.threads or 1) <= MAX_THREADS, "threads", self.threads, f"at most {MAX_THREADS}")
        _require((self.prefetch or 0) >= 0, "prefetch", self.prefetch, "0 or more")
        _require(0 <= self.seed < 2**63, "seed", self.seed, "at least 0 and below 2^63")
        _require(0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        _require(0 < self.lr < float("inf"), "lr", self.lr, "above 0")
        _require(0 <= self.weight_decay < float("inf"), "weight_decay", self.weight_decay, "0 or more")
        good_fanout = len(self.fanout) > 0 and all(n == -1 or 1 <= n < 2**63 for n in self.fanout)
        _require(good_fanout, "fanout", self.fanout, "numbers from 1 up, or -1 for all neighbors")
        _require(bool(DEVICE.fullmatch(self.device)), "device", self.device, "auto, cpu, cuda, or cuda:N")
        parse_format(self.format)
        for name in ("cache_bytes", "host_bytes", "memory_budget"):
            try:
                parse_bytes(getattr(self, name))
            except ValueError as error:
                raise SettingsError(f"{_flag(name)}: {error}") from None
        known_hot_set = self.hot_set in ("presample", "degree", "none") or self.hot_set.endswith(".npy")
        _require(known_hot_set, "hot_set", self.hot_set, "presample, degree, none, or a FILE.npy of ids")
        for name in ("resume", "checkpoint_every"):
            if getattr(self, name) and self.checkpoint is None:
                raise SettingsError(f"{_flag(name)} needs --checkpoint FOLDER, where the checkpoints lie")
        missing = self.hot_set.endswith(".npy") and not Path(self.hot_set).is_file()
        _require(not missing, "hot_set", self.hot_set, "a file that is there")

    def check_outputs(self) -> None:
        """Raises SettingsError where a file could not be written at the end, or is one the run reads."""
        if self.save and self.report and self.save.resolve() == self.report.resolve():
            raise SettingsError(f"--save and --report both name {self.save}: name two files")
        for name in ("save", "report"):
            path: Path | None = getattr(self, name)
            if path is None:
                continue
            is_other = path.exists() and not path.is_file()
            if is_other or not os.access(path.absolute().parent, os.W_OK):
                raise SettingsError(
                    f"{_flag(name)} {path} cannot be written: it must be a file in a folder that is there "
                    "and may be written to"
                )
            self._check_no_input(name, path)
        if self.checkpoint:
            self._check_no_input("checkpoint", self.checkpoint / "any")

    def _check_no_input(self, name: str, path: Path) -> None:
        """Raises SettingsError where the file `path`, which --`name` is to write, is read by the run."""
        kind, _, source = self.dataset.partition(":")
        inputs = [
            self.config,
            Path(self.hot_set),
            Path(source).expanduser() if kind.lower() == "npz" else None,
        ]
        if any(file and file.resolve() == path.resolve() for file in inputs):
            raise SettingsError(f"{_flag(name)} {path} is a file that the run reads: name another one")
        folder = path.resolve().parent
        if (folder / META).exists() and (folder / "indptr.npy").exists():
            raise SettingsError(
                f"{_flag(name)} {getattr(self, name)} lies in the folder of a data set: name another place"
            )

    def conversion(self) -> ConversionSettings:
        """How the data set is to be written where it is missing."""
        return ConversionSettings(
            undirected=self.undirected, dedup=self.dedup, format=parse_format(self.format)
        )

    def budget_bytes(self) -> int:
        """The memory budget in bytes."""
        if self.memory_budget.strip().lower() == "auto":
            return free_memory() * AUTO_PERCENT // 100
        return parse_bytes(self.memory_budget)

    def asked_bytes(self, name: str) -> int | None:
        """The bytes that `cache_bytes` or `host_bytes` asks for; None for auto."""
        size = "0" if self.no_cache else getattr(self, name)
        return None if size.strip().lower() == "auto" else parse_bytes(size)

    def check_cpu(self) -> None:
        """Raises SettingsError for what makes no sense where the model trains on the CPU."""
        if self.host_bytes != "auto" and parse_bytes(self.host_bytes) and not self.no_cache:
            raise SettingsError(
                f"--host-bytes is {self.host_bytes}: on the CPU there is no host tier beside the cache, give "
                "the memory to --cache-bytes"
            )

    def settings(self) -> dict[str, Any]:
        """The settings in plain types, as they are stored with a run."""
        plain: dict[str, Any] = {}
        for name, value in vars(self).items():
            value = str(value) if isinstance(value, Path) else value
            plain[name] = list(value) if isinstance(value, tuple) else value
        return plain


def config_from_args(args: Sequence[str], configs: Path = CONFIGS) -> Config:
    """The settings that the command line and the TOML files give.

    Raises SettingsError for a setting that does not exist, with the nearest known one, or that does not fit.
    """
    file = _last_value(args, "--config")
    from_file = read_toml(Path(file)) if file else {}
    dataset = _last_value(args, "--dataset") or str(from_file.get("dataset", Config.dataset))
    named = configs / f"{config_name(dataset)}.toml"
    has_own = named.parent == configs and named.is_file()  # not what lies beside a data set that is a path
    from_name = read_toml(named) if has_own else {}
    return parse(Config, [*_as_flags({**from_name, **from_file}), *args], PROG)


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, names with underscores.

    Raises SettingsError when it is missing or damaged, names a setting that does not exist or that a file
    cannot have, or switches what is no switch.
    """
    try:
        with path.open("rb") as file:
            settings = {key.replace("-", "_"): value for key, value in tomllib.load(file).items()}
        check_flags((_flag(name) for name in settings), Config)
        for name, value in settings.items():
            _require(name != "config", name, value, "given on the command line")
            no_switch = isinstance(value, bool) and not isinstance(getattr(Config, name, False), bool)
            _require(not no_switch, name, value, "a value: it is no switch")
    except FileNotFoundError:
        raise SettingsError(f"there is no file {path} with settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, SettingsError) as error:
        raise SettingsError(f"{path}: {error}") from None
    return settings


def _as_flags(settings: Mapping[str, Any]) -> list[str]:
    flags = []
    for name, value in settings.items():
        if isinstance(value, bool):
            pairs = name in ("undirected", "dedup")
            flags += [_flag(name)] if value else [_flag("no_" + name)] if pairs else []
        else:
            words = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            flags.append(f"{_flag(name)}={words}")
    return flags


def _last_value(args: Sequence[str], flag: str) -> str | None:
    """What the last `flag VALUE` or `flag=VALUE` says."""
    value = None
    for at, arg in enumerate(args):
        if arg == flag and at + 1 < len(args):
            value = args[at + 1]
        elif arg.startswith(flag + "="):
            value = arg.partition("=")[2]
    return value


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _require(good: bool, name: str, value: object, wanted: str) -> None:
    if not good:
        raise SettingsError(f"{_flag(name)} is {value}, it must be {wanted}")
