"""`make compare`: its table has all codecs, says which are not installed, and no wrong byte passes."""

import json
import zlib
from pathlib import Path

import compare
import numpy as np
import pytest
from compare import Line, Missing
from compare_rows import ROWS, Rows
from compressors import COMPRESSORS, ELSEWHERE, Compressor, Entry

FEW = Rows(np.random.default_rng(0).standard_normal((40, 16), np.float32), "float32")
NAMES = ["memcpy", "version 1", "version 2"]


@pytest.fixture(autouse=True)
def _short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "CALLS_SECONDS", 0.001)


def compared_with(monkeypatch: pytest.MonkeyPatch, **entries: Entry) -> list[Line | Missing]:
    """The lines of `FEW`, with these in the place of the packages."""
    monkeypatch.setattr(compare, "COMPRESSORS", entries)
    return list(compare.compare("few", FEW, num_rounds=1))


def zlib_but(decode: object = zlib.decompress) -> Entry:
    return Entry("zlib", lambda dtype: Compressor(zlib.compress, decode))  # type: ignore[arg-type]


def not_there(dtype: str) -> Compressor:
    import gnn_ibp_has_no_such_package  # type: ignore[import-not-found]

    return gnn_ibp_has_no_such_package.made(dtype)


def test_whole_table_comes_on_small_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, name = tmp_path / "compare.json", next(iter(ROWS))
    compare.main(["--quick", "--only", name, "--json", str(file)])
    numbers, text = json.loads(file.read_text()), capsys.readouterr().out.splitlines()
    assert numbers["machine"]["processors"] >= 1
    lines = {line["codec"]: line for line in numbers["lines"]}
    assert list(lines) == [*NAMES, *COMPRESSORS, *ELSEWHERE]
    for codec, line in lines.items():
        assert line["rows"] == name
        (shown,) = (one for one in text if one.startswith(f"{codec:<18} "))
        if "why" in line:
            assert line["why"] in shown
            continue
        assert [rates["threads"] for rates in line["rates"]] == [1, 2]
        assert all(min(rates["decode"], rates["encode"]) > 0 for rates in line["rates"])
        assert line["best"]["saved"] >= line["by_row"]["saved"] and line["by_row"]["row_us"] > 0
        assert f"{line['best']['saved']:.1%} {line['best']['unit']}" in shown
    assert lines["memcpy"]["best"]["saved"] == 0 < lines["version 2"]["by_row"]["saved"]


def test_codec_is_shown_at_the_unit_where_it_saves_most(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, line = compared_with(monkeypatch, zlib=zlib_but())[:4]
    assert isinstance(line, Line)
    raw = FEW.bytes
    assert line.best.unit == "4 KiB"  # all rows, as more are: the first of equals
    assert line.best.saved == 1 - len(zlib.compress(raw.tobytes())) / raw.nbytes
    assert line.by_row.saved == 1 - sum(len(zlib.compress(row.tobytes())) for row in raw) / raw.nbytes


def test_package_that_is_not_installed_is_a_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = compared_with(monkeypatch, absent=Entry("absent", not_there))
    assert lines[3] == Missing("few", "absent", "not installed")
    assert compare.text(lines[3]).split() == ["absent", "not", "installed"]


@pytest.mark.parametrize(
    "decode",
    [
        lambda stored: zlib.decompress(stored)[:-1] + b"\0",
        lambda stored: zlib.decompress(stored)[:-1],
        lambda stored: zlib.decompress(stored) + b"\0",
    ],
    ids=["other", "fewer", "more"],
)
def test_codec_that_gives_other_bytes_back_is_caught(decode: object, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="broken, few, by row: other bytes come back"):
        compared_with(monkeypatch, broken=zlib_but(decode))
