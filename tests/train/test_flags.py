"""Errors on the command line are one line and name the remedy."""

from dataclasses import dataclass
from typing import Literal

import pytest

from gnn_ibp.errors import SettingsError
from gnn_ibp.train.flags import parse


@dataclass(frozen=True)
class Settings:
    """Do something."""

    batch_size: int = 1
    layout: Literal["condensed", "in-place"] = "condensed"
    deep: bool = False


def test_last_of_repeated_flags_counts() -> None:
    assert parse(
        Settings, ["--batch-size", "3", "--deep", "--batch-size=4", "--no-deep"], "prog"
    ) == Settings(4)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--batchsize", "3"], "unknown setting '--batchsize', did you mean '--batch-size'?"),
        (["--batch-size", "x"], "--batch-size: invalid literal"),
        (["--layout", "inplace"], "invalid choice 'inplace' for argument '--layout'"),
        (["--batch-size"], "Missing value for argument '--batch-size'"),
        (["more"], "Unrecognized options: more"),
    ],
)
def test_error_is_one_line_that_names_the_flag(args: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse(Settings, args, "prog")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(Settings, ["--help"], "prog")
    assert stop.value.code == 0
    assert "--batch-size" in capsys.readouterr().out
