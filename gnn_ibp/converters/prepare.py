"""Data sets by name: opened where they are, made where they are not."""

from pathlib import Path

from gnn_ibp.budget import format_bytes, used_memory
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.folder import refuse_existing, refuse_overlap, remove_outlived
from gnn_ibp.conversion.need import ConversionNeed, whole_mib
from gnn_ibp.converters.folder import folder_parts, folder_settings
from gnn_ibp.converters.sources import Source, find_source
from gnn_ibp.dataset import Dataset
from gnn_ibp.dataset_meta import NAME
from gnn_ibp.errors import SettingsError
from gnn_ibp.progress import Say

_MARGIN_BYTES = 16 << 20
"""By which the memory of two runs of the program differs before they convert anything."""


def _nothing(line: str) -> None:
    pass


def prepare(
    name: str,
    root: Path | str,
    *,
    raw_root: Path | str | None = None,
    num_classes: int | None = None,
    settings: ConversionSettings | None = None,
    memory_budget: int | None = None,
    say: Say = _nothing,
) -> Dataset:
    """Opens the data set `name` in root/NAME[-undirected][-dedup], and makes it first where it is not there.

    name: of a source, see `find_source`; or of a data set that lies in `root` already, or the path of one.
    raw_root: where raw files lie or are downloaded to, by default root/raw.
    num_classes: which of its labels, see `find_source`.
    say: takes a line about what is done.

    SettingsError where what is there was made from another source or with other settings, or the name is
    unknown.
    """
    root, settings = Path(root), settings or ConversionSettings()
    suffix = "-undirected" * settings.undirected + "-dedup" * settings.dedup
    existing = _existing(name, root, suffix)
    if existing is not None:
        return _with_classes(_checked(existing, settings, None), num_classes)
    source = find_source(name, num_classes)
    path = root / f"{source.folder}{suffix}"
    if not path.exists():
        parts = source.read(_raw_root(raw_root, root), root, say)
        try:
            _write(parts, path, settings, memory_budget, say)
        except FileExistsError:  # another process made it meanwhile
            if not (path / NAME).is_file():
                raise
    else:
        remove_outlived(path)
    return _checked(path, settings, source)


def convert_source(
    source: str,
    out: Path | str,
    *,
    raw_root: Path | str | None = None,
    num_classes: int | None = None,
    settings: ConversionSettings | None = None,
    memory_budget: int | None = None,
    say: Say = _nothing,
) -> Path:
    """Writes the data set of `source`, a name or the folder of a data set, into the new folder `out`.

    raw_root: by default the folder `raw` beside `out`. Raises as `write_dataset`, and SettingsError for an
    unknown name, where `memory_budget` (bytes) does not suffice, or where source and `out` lie in each other.
    """
    out, asked = Path(out), settings or ConversionSettings()
    is_folder = source != "" and (Path(source) / NAME).is_file()
    if is_folder:
        refuse_overlap(out, Path(source))
    refuse_existing(out)
    if is_folder:
        dataset = _with_classes(Dataset.open(source), num_classes)
        settings = folder_settings(dataset, asked)
        if settings.format != asked.format:
            say(f"row format {settings.format}, as {source} was converted; --format chooses another")
        parts = folder_parts(dataset, settings)
    else:
        raw, settings = _raw_root(raw_root, out.parent), asked
        parts = find_source(source, num_classes).read(raw, out.parent, say)
    return _write(parts, out, settings, memory_budget, say)


def _write(
    parts: DatasetParts, out: Path, settings: ConversionSettings, memory_budget: int | None, say: Say
) -> Path:
    if memory_budget is None:
        return write_dataset(parts, out, settings, say=say)
    held = used_memory()
    need = ConversionNeed(parts, settings, memory_budget - held)
    if need.smallest_memory_bytes > need.memory_bytes:
        smallest = held + need.smallest_memory_bytes + _MARGIN_BYTES
        raise SettingsError(
            f"the conversion needs {whole_mib(smallest)} of memory, the program and its source take "
            f"{format_bytes(held)} of it already, and the memory budget is {format_bytes(memory_budget)}; "
            "raise it"
        )
    return write_dataset(parts, out, settings, need.memory_bytes, say)


def _raw_root(raw_root: Path | str | None, root: Path) -> Path:
    """Where raw files lie. SettingsError where that was said and is no folder."""
    if raw_root is None:
        return root / "raw"
    if not Path(raw_root).is_dir():
        raise SettingsError(
            f"--raw-root {raw_root} is no folder; make it, if files are to be downloaded into it"
        )
    return Path(raw_root)


def _existing(name: str, root: Path, suffix: str) -> Path | None:
    """The folder of a data set that `name` is the path of, or that no source would be made into."""
    if (Path(name) / NAME).is_file():
        return Path(name)
    try:
        find_source(name)
    except SettingsError:
        for path in (root / f"{name}{suffix}", root / name):
            if (path / NAME).is_file():
                return path
    return None


def _checked(path: Path, settings: ConversionSettings, source: Source | None) -> Dataset:
    dataset = Dataset.open(path)
    if source:
        for key, wanted in source.identity.items():
            if dataset.meta.source.get(key) != wanted:
                raise SettingsError(
                    f"{path} was made from {dict(dataset.meta.source)}, {source.name} is "
                    f"{dict(source.identity)}; "
                    "choose another --root, or remove that folder and it is made again"
                )
    _check_format(dataset, settings)
    default = ConversionSettings()
    others = {key: wanted for key, wanted in vars(settings).items() if key != "format"}
    for key, wanted in others.items():
        there = dataset.meta.settings.get(key)
        asked_for = key in ("undirected", "dedup") or wanted != getattr(default, key)
        if asked_for and wanted != there:
            raise SettingsError(
                f"{path} was made with {key} = {there}, {key} = {wanted} is asked for; "
                f"{_remedy(path, key, wanted)}"
            )
    return dataset


def _check_format(dataset: Dataset, settings: ConversionSettings) -> None:
    """SettingsError where another row format is asked for than the features have, whatever chose it."""
    made_with = dataset.meta.asked_format
    if settings.format == "auto" != made_with:
        raise SettingsError(
            f"{dataset.path} was made with format = {made_with}, format = auto is asked for; "
            f"{_remedy(dataset.path, 'format', 'auto')}"
        )
    for name in dataset.features if isinstance(settings.format, int) else ():
        there = dataset.row_format(name)
        if there != settings.format:
            raise SettingsError(
                f"{dataset.path} has {name} in row format {there}, format = {settings.format} is asked for; "
                f"{_remedy(dataset.path, 'format', settings.format)}"
            )


def _with_classes(dataset: Dataset, num_classes: int | None) -> Dataset:
    """`dataset`. SettingsError where other labels are asked for than those that it has."""
    if num_classes not in (None, dataset.num_classes):
        raise SettingsError(
            f"{dataset.path} has {dataset.num_classes} classes, --num-classes is {num_classes}; leave it "
            "out, or make another data set from the source"
        )
    return dataset


def _remedy(path: Path, key: str, wanted: object) -> str:
    flag = f"--{key.replace('_', '-')}"
    if wanted is False:
        return f"ask for {flag}, or convert the source again into another folder"
    value = "" if wanted is True else f" {wanted}"
    return f"`gnn-ibp convert {path} {path}-{key.replace('_', '-')} {flag}{value}` makes such a copy"
