"""A small suite of one task, which takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_suites import written

from harness.studies.benchmark.suite import Suite, load_suite


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """The small suite."""
    return load_suite(written(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="session")
def scale(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the built-in policies of the small suite are kept once they were replayed."""
    return tmp_path_factory.mktemp("scale")
