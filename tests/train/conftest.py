"""Fixtures of the tests that train."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a module's data sets, each made once."""
    return tmp_path_factory.mktemp("root")
