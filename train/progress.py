"""A progress bar on terminals, silent elsewhere."""

from typing import Any

from tqdm import tqdm


def progress(title: str, total: int) -> Any:
    """A bar of `total` steps; call its update(n), and close it or enter it."""
    return tqdm(desc=title, total=total, leave=False, disable=None, mininterval=0.5, unit_scale=True)
