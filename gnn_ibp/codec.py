"""The codecs there are: by the version in a file's header, and fitted on rows."""

from itertools import chain

from gnn_ibp.errors import ForeignFileError
from gnn_ibp.fit_sample import fit_sample
from gnn_ibp.ibp2_codec import IBP2Codec, split_of
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_bytes import Array
from gnn_ibp.row_codec import RowCodec, smallest
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
    candidates = {1: IBPCodec.candidates(sample), 2: IBP2Codec.candidates(sample, split_of(rows.dtype))}
    tried = candidates.values() if version is None else [candidates[version]]
    return smallest(chain.from_iterable(tried), sample)
