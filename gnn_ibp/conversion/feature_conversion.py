"""A stream of rows becomes a feature file of a data set, over several lives of the program if need be."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gnn_ibp.codec import codec_candidates, codec_from_params
from gnn_ibp.column_stats import ColumnFacts, ColumnStats
from gnn_ibp.conversion.dataset_parts import ConversionSettings
from gnn_ibp.conversion.row_stream import Rows, RowStream
from gnn_ibp.dataset_meta import FeatureInfo
from gnn_ibp.disk_file import DiskFile
from gnn_ibp.feature_writer import FeatureFileWriter
from gnn_ibp.fit_sample import fit_sample
from gnn_ibp.format import read_header
from gnn_ibp.futures import finish_oldest
from gnn_ibp.journal import Journal
from gnn_ibp.progress import progress
from gnn_ibp.row_codec import RowCodec, smallest
from gnn_ibp.stages import Stages

CHECKPOINT_BYTES = 256 << 20
"""About so many raw rows, twice, may have to be encoded again after a kill."""

_BLOCKS_PENDING = 2


class FeatureConversion:
    """One feature of a data set: fitted, encoded and written, with the statistics of its columns.

    kind, name: of the feature. settings: `chunk_bits` must suit the rows. folder: where NAME.ibp goes.
    columns: what is known of its columns already.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        rows: RowStream,
        settings: ConversionSettings,
        folder: Path,
        work: Path,
        journal: Journal,
        stages: Stages,
        columns: ColumnFacts | None,
    ) -> None:
        self._kind, self._name, self._rows, self._settings = kind, name, rows, settings
        self._path, self._work = folder / f"{name}.ibp", work
        self._journal, self._stage, self._stages = journal, f"feature {name}", stages
        self._columns = columns

    def run(self) -> FeatureInfo:
        """Writes the file, or what is missing of it by the journal; returns what there is to tell of it."""
        state = self._journal.get(self._stage)
        if state and "info" in state:
            return FeatureInfo.from_json(self._name, state["info"])
        row_type = self._rows.row_type
        if state:
            version, params = state["codec"]
            codec = codec_from_params(version, row_type.row_bytes, bytes.fromhex(params))
        else:
            codec = self._fit()
        counts = row_type.torch_dtype.is_floating_point and not self._columns
        stats = ColumnStats(row_type.shape) if counts else None
        if state and stats:
            stats.go_on(state["stats"])
        with (
            self._stages.measure(f"encode {self._name}") as stage,
            FeatureFileWriter(
                self._path,
                codec,
                row_type,
                layout=self._settings.layout,
                align=self._settings.align,
                work=self._work,
                state=state and state["writer"],
            ) as writer,
        ):
            first = writer.num_rows
            self._write_rows(writer, stats, codec)
            stage.num_bytes = (writer.num_rows - first) * row_type.row_bytes
        info = self._info(stats.facts if stats else self._columns, writer.content)
        self._journal.put(self._stage, info=info.to_json())
        return info

    def _write_rows(self, writer: FeatureFileWriter, stats: ColumnStats | None, codec: RowCodec) -> None:
        """Encodes and counts blocks while the next ones are read and earlier ones brought to the disk."""
        since, noting = 0, Future[None]()
        noting.set_result(None)
        pending, jobs_of_block = deque[Future[None]](), 2 if stats else 1
        with (
            ThreadPoolExecutor(1, f"encode-{self._name}") as encoder,
            ThreadPoolExecutor(1, f"count-{self._name}") as counter,
            ThreadPoolExecutor(1, f"sync-{self._name}") as syncer,
        ):
            for block in self._blocks(writer.num_rows):
                if since >= CHECKPOINT_BYTES:
                    finish_oldest(pending, 0)
                    noting.result()
                    state = {"writer": writer.state(), "stats": stats.state() if stats else None}
                    noting = syncer.submit(
                        self._note, writer, {"codec": [codec.version, codec.params.hex()], **state}
                    )
                    since = 0
                since += len(block) * self._rows.row_type.row_bytes
                pending.append(encoder.submit(writer.append, block))
                if stats:
                    pending.append(counter.submit(stats.add, block))
                finish_oldest(pending, _BLOCKS_PENDING * jobs_of_block)
            finish_oldest(pending, 0)
            noting.result()

    def _note(self, writer: FeatureFileWriter, state: dict[str, Any]) -> None:
        """Notes a state, once what it tells of is on the disk."""
        writer.sync()
        self._journal.put(self._stage, **state)

    def _fit(self) -> RowCodec:
        settings = self._settings
        with self._stages.measure(f"fit {self._name}") as stage:
            sample = self._rows.sample(settings.seed)
            stage.num_bytes = len(sample) * self._rows.row_type.row_bytes
            sample_bytes = fit_sample(sample, settings.seed)
            candidates = codec_candidates(
                sample_bytes, sample.dtype, settings.needed_format, settings.chunk_bits, settings.threshold
            )
            return smallest(filter(self._can_be_aligned, candidates), sample_bytes)

    def _can_be_aligned(self, codec: RowCodec) -> bool:
        """Where the settings say to which bytes."""
        return self._settings.align is None or self._settings.align % codec.unit == 0

    def _blocks(self, first_row: int) -> Iterator[Rows]:
        """The rows from `first_row` on, with a bar on a terminal when it takes more than a second."""
        with progress(f"encoding {self._name}", self._rows.num_rows, "rows") as bar:
            bar.update(first_row)
            for block in self._rows.blocks(first_row) if first_row else self._rows.blocks():
                yield block
                bar.update(len(block))

    def _info(self, columns: ColumnFacts | None, content: str) -> FeatureInfo:
        file = DiskFile(self._path)
        try:
            header = read_header(file)
        finally:
            file.close()
        return FeatureInfo(
            kind=self._kind,
            dtype=header.dtype,
            row_shape=header.row_shape,
            num_rows=header.num_rows,
            file=self._path.name,
            raw_bytes=header.num_rows * header.row_type.row_bytes,
            stored_bytes=header.rows_bytes,
            num_raw_rows=header.num_raw_rows,
            density=columns.density if columns else None,
            statistics=columns.statistics if columns else None,
            fingerprint=header.fingerprint,
            content=content,
        )
