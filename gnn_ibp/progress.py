"""The progress bar of long work: on terminals, for what takes more than a second; silent elsewhere."""

from collections.abc import Callable
from typing import Any

Say = Callable[[str], None]
"""Takes a line about what is done."""


def progress(title: str | None, total: int | None, unit: str = "") -> Any:
    """A bar of `total` steps; call its update(n), and close it or enter it. No title: no bar."""
    from tqdm import tqdm

    disable = True if title is None else None  # None: where there is no terminal
    return tqdm(
        desc=title,
        total=total,
        unit=unit,
        unit_scale=True,
        delay=1,
        mininterval=0.5,
        leave=False,
        disable=disable,
    )
