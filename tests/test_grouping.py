"""With several workers, tests that share what is made once go to one of them."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def shared() -> None:
    """Stands for what is dear."""


@pytest.mark.usefixtures("shared")
def test_tests_that_share_a_fixture_are_named_as_a_group(request: pytest.FixtureRequest) -> None:
    """The scheduler of pytest-xdist reads the group from the end of a test's name."""
    if not getattr(request.config, "workerinput", {}).get("grouped"):
        pytest.skip("this run has no groups: it needs -n, and no --dist")
    assert request.node.nodeid.endswith("@tests/test_grouping.py")
