"""Flags: a dataclass as a command line (by tyro), with errors of one line that name the remedy."""

import contextlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import tyro

from gnn_ibp.errors import SettingsError, unknown_name

T = TypeVar("T")


def parse(settings: type[T], args: Sequence[str], prog: str) -> T:
    """`settings` filled from `args`; of a flag given twice the last counts. --help prints and exits.

    Raises SettingsError for unknown flags, with the nearest known one, and for values that do not fit.
    """
    check_flags((arg.partition("=")[0] for arg in args if arg.startswith("--")), settings)
    messages = io.StringIO()
    try:
        with contextlib.redirect_stderr(messages):
            return tyro.cli(settings, prog=prog, args=list(args))
    except SystemExit as stop:
        if not stop.code:
            raise
        problem = _first_paragraph(messages.getvalue()).removeprefix(f"Error parsing {settings.__name__}: ")
        raise SettingsError(f"{problem} (see {prog} --help)") from None


def check_flags(flags: Iterable[str], settings: type[Any]) -> None:
    """Raises SettingsError for the first flag that `settings` does not have."""
    known = ["--" + field.name.replace("_", "-") for field in fields(settings)]
    switches = ["--no-" + name.removeprefix("--") for name in known]
    for flag in flags:
        if flag not in ("--help", *known, *switches):
            raise SettingsError(unknown_name("setting", flag, known))


def _first_paragraph(box: str) -> str:
    """What went wrong, out of the frame that tyro draws: a title, then paragraphs between rules."""
    paragraphs: list[list[str]] = [[]]
    for line in box.splitlines():
        text = line.strip("│╭╮╰╯ ")
        if set(text) <= set("─-") or line.startswith("╭"):
            paragraphs.append([])
        else:
            paragraphs[-1].append(text)
    filled = [" ".join(lines) for lines in paragraphs if lines]
    framed = box.lstrip().startswith("╭")  # the title is in the frame then
    return filled[0 if framed else 1] if len(filled) > 1 else " ".join(filled)
