"""The codecs there are: by the version in a file's header, and fitted on rows."""

from collections.abc import Iterator

from gnn_ibp.errors import ForeignFileError
from gnn_ibp.fit_sample import fit_sample
from gnn_ibp.ibp2_codec import IBP2Codec, split_of
from gnn_ibp.ibp_codec import IBPCodec, Threshold
from gnn_ibp.row_bytes import Array, DType
from gnn_ibp.row_codec import RowCodec, smallest
from gnn_ibp.rows import Bytes
from gnn_ibp.version import __version__

CODECS: dict[int, type[RowCodec]] = {codec.version: codec for codec in (IBPCodec, IBP2Codec)}
"""By version of the row format."""


def codec_from_params(version: int, row_bytes: int, params: bytes) -> RowCodec:
    """The codec of a file header. Raises FormatError for a version or parameters that are none."""
    check_version(version)
    return CODECS[version].from_params(row_bytes, params)


def check_version(version: int, read_since: str = "") -> None:
    """Raises ForeignFileError unless this program reads rows of this version.

    read_since: the first gnn_ibp that does, where the file tells.
    """
    if version not in CODECS:
        known = " and ".join(map(str, CODECS))
        newer = f"gnn_ibp {read_since} or a newer one" if read_since else "a newer gnn_ibp"
        raise ForeignFileError(
            f"rows are in format version {version}, this is gnn_ibp {__version__}, which reads "
            f"{known}; use {newer}"
        )


def fit_codec(rows: Array, version: int | None = None, seed: int = 0) -> RowCodec:
    """The codec that stores a seeded sample of `rows` (N, ...), NumPy or torch, in the fewest bytes.

    version: 1 or 2, of the row format; None tries both, and takes 1 of equals. Lossless for other rows of the
    same length, too. Raises ValueError for another version, and as `IBPCodec.fit` for what are no rows.
    """
    if version is not None and version not in CODECS:
        raise ValueError(f"version is {version!r}, want 1, 2, or None for the one that saves more")
    sample = fit_sample(rows, seed)
    return smallest(codec_candidates(sample, rows.dtype, version), sample)


def codec_candidates(
    sample: Bytes,
    dtype: DType,
    version: int | None = None,
    chunk_bits: int | None = None,
    threshold: Threshold = None,
) -> Iterator[RowCodec]:
    """Those that may store `sample`, uint8 (N, row_bytes), in the fewest bytes, the preferred first.

    dtype: of the rows. version: None for all. chunk_bits, threshold: of version 1, see `IBPCodec.fit`.
    """
    if version in (None, IBPCodec.version):
        yield from IBPCodec.candidates(sample, chunk_bits, threshold)
    if version in (None, IBP2Codec.version):
        yield from IBP2Codec.candidates(sample, split_of(dtype))
