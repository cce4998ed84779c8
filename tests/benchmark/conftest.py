"""A small suite of one task, which takes seconds."""

from __future__ import annotations

import pytest
from small_suites import written

from harness.studies.benchmark.suite import Suite, load_suite


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """The small suite."""
    return load_suite(written(tmp_path_factory.mktemp("small")))
