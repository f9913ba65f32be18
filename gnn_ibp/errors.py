"""The package's own exceptions, and the wording of errors about unknown names."""

from collections.abc import Iterable
from difflib import get_close_matches


class FormatError(ValueError):
    """Bytes on disk that are damaged, cut short, or of a version this program does not read."""


class ForeignFileError(FormatError):
    """A file of another kind, or of a version this program does not read: nothing says that it is damaged."""


class SettingsError(ValueError):
    """Settings that contradict each other or what is already there; the message names the remedy."""


KEPT = "what is done is kept, the same command goes on from there"
"""Note on an error that ends work which can be gone on with."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a `name` that is not among `known`, with the nearest known one where there is one."""
    names = sorted(known)
    return f"unknown {kind} {name!r}{nearest(name, names)} known: {', '.join(names)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Behind an unknown `name` in a message: a question where one of `known` is near, or a semicolon."""
    near = get_close_matches(name, sorted(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ";"
