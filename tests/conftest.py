"""Shared fixtures: where the optional test data lies, and a visible skip where it is missing."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real graphs beside the checkout."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"real graphs are not here: {folder} is missing")
    return folder
