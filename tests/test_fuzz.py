"""Mutated inputs of every kind through the command line; `python -m fuzz` tries more, and shows one."""

from __future__ import annotations

import os

import pytest
from fuzz.__main__ import tried

_BLOCK = 100


def assert_all_well(seeds: range, **how: bool) -> None:
    """Every case of these seeds ends as the package `fuzz` says that it must."""
    wrong = [
        f"python -m fuzz {answer['seed']} --show: {fault}"
        for answer in tried(seeds, **how)
        for fault in answer["wrong"]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.early
@pytest.mark.parametrize("first", range(0, _BLOCK, _BLOCK))
def test_mutated_input_is_read_or_refused_by_name(first: int) -> None:
    """Exit code 0, 1 or 2, a message where it is no run, nothing left behind, in 20 CPU-s and 2 GB."""
    assert_all_well(range(first, first + _BLOCK))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(100))
def test_a_hundred_thousand_mutated_inputs(part: int) -> None:
    """All commands of every case; `FUZZ_SEEDS=100000:200000` tries other seeds."""
    first, end = map(int, os.environ.get("FUZZ_SEEDS", "0:100000").split(":"))
    assert_all_well(range(first, end)[part::100], thorough=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_two_thousand_mutated_inputs_as_processes_of_their_own(part: int) -> None:
    """As a user's shell would run them."""
    assert_all_well(range(2000)[part::10], processes=True)
