"""What a data set is made of before it is written, and how it is to be written. Converters end in this."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from gnn_ibp.column_stats import ColumnFacts
from gnn_ibp.conversion.row_stream import RandomAccessRows, RowStream
from gnn_ibp.edges.edge_stream import EdgeStream, both_ends
from gnn_ibp.errors import SettingsError
from gnn_ibp.format import IN_PLACE, LAYOUTS, check_align
from gnn_ibp.graph import Graph
from gnn_ibp.ibp_codec import IBPCodec, Threshold, check_chunk_bits, threshold_percent

Format = int | Literal["auto"] | None
"""1 or 2, of rows; "auto" for the one that saves more; None where nobody said."""


def parse_format(flag: str | int | None) -> Format:
    """What --format names. SettingsError for what is none."""
    if flag is None or flag == "auto":
        return None if flag is None else "auto"
    if str(flag) not in ("1", "2"):
        raise SettingsError(f"--format is {flag}, it must be auto, 1 or 2")
    return int(flag)


@dataclass(frozen=True)
class ConversionSettings:
    """How a data set is to be written; kept in its meta.json.

    undirected: add the reverse of every edge, duplicates removed. dedup: remove duplicates alone.
    format:     version of the row format, 1 or 2; "auto": of each feature, what saves more on a sample;
                None: as auto, but a data set's folder that is written again keeps what it was written with.
    chunk_bits: 8, 16, 32 or 64, for the features whose rows it divides; None: the best on a sample.
    threshold:  None: fit each position by itself; 0.50 to 0.99 or "sweep": the rule of the IBP paper.
    layout:     "condensed" or "in-place"; align: bytes, of the condensed layout; None: the smallest.
    seed:       of the sample that codecs are fitted on.

    chunk_bits, threshold and the layout in place are of version 1, and choose it. Raises SettingsError where
    version 2 is asked for beside them, and for values that do not exist.
    """

    undirected: bool = False
    dedup: bool = False
    chunk_bits: int | None = None
    threshold: Threshold = None
    layout: str = "condensed"
    align: int | None = None
    seed: int = 0
    format: Format = None

    def __post_init__(self) -> None:
        if self.format not in (None, "auto", 1, 2):
            raise SettingsError(f"format is {self.format}, want 1, 2, or auto for the one that saves more")
        if self.format == 2 and self._of_version_1:
            setting = " and ".join(self._of_version_1)
            raise SettingsError(f"{setting} asks for row format 1, format = 2 for another; leave one out")
        if self.seed < 0:
            raise SettingsError(f"seed is {self.seed}, it must not be negative")
        if self.layout not in LAYOUTS:
            raise SettingsError(f"layout is {self.layout!r}, it must be one of {', '.join(LAYOUTS)}")
        try:
            threshold_percent(self.threshold)
            if self.chunk_bits is not None:
                check_chunk_bits(self.chunk_bits)
            if self.align is not None:
                check_align(self.align, unit=1)
        except ValueError as error:
            raise SettingsError(str(error)) from None

    @property
    def needed_format(self) -> int | None:
        """The version of the row format that all features have to have; None where each may have its own."""
        if self._of_version_1:
            return IBPCodec.version
        return None if self.format == "auto" else self.format

    @property
    def _of_version_1(self) -> list[str]:
        """Those settings that only version 1 has."""
        settings = {
            "chunk_bits": self.chunk_bits is not None,
            "threshold": self.threshold is not None,
            "layout": self.layout == IN_PLACE,
        }
        return [f"{name} = {getattr(self, name)}" for name, is_given in settings.items() if is_given]


@dataclass(frozen=True)
class DatasetParts:
    """The parts of a data set, not yet checked.

    source:        what identifies where it came from, for meta.json.
    num_nodes:     None where only the end of the first feature's blocks tells it.
    edge_index:    integers (2, E) or a pair of (E,): sources, targets; or an `EdgeStream`. None: no edges, or
                   `graph` has them.
    graph:         edges that are sorted already, taken as they are; edge attributes are in their order.
    edge_perm:     where each edge of `edge_index` or `graph` stood in its own source, where known.
    labels:        (num_nodes,), integers or floats with NaN for none; negative is none as well.
    num_classes:   None: highest label + 1.
    splits:        name -> node ids, bool (num_nodes,), or a range of ids.
    features:      node attributes that become feature files. edge_features: those of edges.
    arrays, edge_arrays: attributes that stay plain arrays, such as types.
    names:         what numbers stand for: "class", "node_type", "edge_type".
    fingerprint:   tells this content from any other where `source` does not; None: nothing does, so that a
                   conversion that was killed starts anew.
    columns:       what is known of the columns of float features already.
    directed:      whether the source's edges are one-way; None: it does not say.
    """

    name: str
    source: Mapping[str, Any]
    num_nodes: int | None
    edge_index: Any = None
    graph: Graph | None = None
    edge_perm: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None
    num_classes: int | None = None
    splits: Mapping[str, NDArray[Any] | range] = field(default_factory=dict)
    features: Mapping[str, RowStream] = field(default_factory=dict)
    edge_features: Mapping[str, RandomAccessRows] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    edge_arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    names: Mapping[str, list[str]] = field(default_factory=dict)
    metric: str = "accuracy"
    fingerprint: str | None = ""
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)
    directed: bool | None = None

    @property
    def num_edges(self) -> int:
        """Of the source: before reverse edges are added and duplicates removed."""
        if self.graph is not None:
            return self.graph.num_edges
        if isinstance(self.edge_index, EdgeStream):
            return self.edge_index.num_edges
        return 0 if self.edge_index is None else len(both_ends(self.edge_index)[0])
