"""Shared fixtures: where the optional test data lies, and a visible skip where it is missing.

A run of many tests compiles what takes longest, the sanitized extension, beside the first of them.
"""

from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from host_build import BuildError
from sanitized_build import build_extension

MANY_TESTS = 1000
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real graphs beside the checkout."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"real graphs are not here: {folder} is missing")
    return folder


def pytest_collection_finish(session: pytest.Session) -> None:
    if len(session.items) > MANY_TESTS and not session.config.option.collectonly:
        Thread(target=_compile_ahead, daemon=True).start()


def _compile_ahead() -> None:
    with suppress(BuildError):  # the test that needs it tells
        build_extension()
