"""Whether rows can be stored as the settings of a conversion ask: told before anything is converted."""

from collections.abc import Iterable, Mapping

from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.errors import SettingsError
from gnn_ibp.format import check_align
from gnn_ibp.ibp2.split import Split
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.ibp_codec import CHUNK_BITS
from gnn_ibp.row_type import RowType


def check_row_settings(parts: DatasetParts, settings: ConversionSettings) -> None:
    """SettingsError for a width that divides the rows of no feature, or an alignment that one cannot have.

    It names what would work.
    """
    streams = {**parts.features, **parts.edge_features}
    types = {name: rows.row_type for name, rows in streams.items()}
    if settings.chunk_bits and types:
        _check_width(types, settings.chunk_bits)
    if settings.align is not None:
        for name, row_type in types.items():
            _check_align(name, settings.align, _least_unit(row_type, settings))


def divides(chunk_bits: int, row_type: RowType) -> bool:
    """Whether rows are whole chunks of this width."""
    return row_type.row_bytes % (chunk_bits // 8) == 0


def _check_width(types: Mapping[str, RowType], wanted: int) -> None:
    if any(divides(wanted, row_type) for row_type in types.values()):
        return
    suiting = [bits for bits in CHUNK_BITS if any(divides(bits, row_type) for row_type in types.values())]
    sizes = ", ".join(f"{name} {row_type.row_bytes}" for name, row_type in types.items())
    raise SettingsError(
        f"chunk_bits = {wanted} divides the rows of no feature, which have these bytes: {sizes}; "
        f"{_either(reversed(suiting))} would, or leave it out"
    )


def _least_unit(row_type: RowType, settings: ConversionSettings) -> int:
    """Bytes of which stored rows are multiples, in the narrowest chunks that the settings leave."""
    if settings.needed_format == IBP2Codec.version:
        return Split.of(row_type.dtype, row_type.torch_dtype.itemsize).chunk_bits // 8
    if settings.chunk_bits and divides(settings.chunk_bits, row_type):
        return settings.chunk_bits // 8
    return 1


def _check_align(name: str, align: int, unit: int) -> None:
    try:
        check_align(align, unit)
    except ValueError:
        raise SettingsError(
            f"align = {align} does not suit {name}, whose rows are stored in units of {unit} bytes: give a "
            f"multiple of {max(4, unit)}, or leave it out"
        ) from None


def _either(numbers: Iterable[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last
