"""Whole schedules as the plugin makes them, and as the rules say word by word.

`plain_cycles` says the rules of the scheduling cycle once more: the tournament of fair sharing recursively,
from scratch at every draw, with shares of the snapshot as the entries before left it; flavors, targets,
what is inadmissible and what requeues it. It replays recorded traces as the real code did, so both can be
trusted where they agree on worlds that nobody recorded.
"""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import plain_cycles
from hypothesis import assume, given
from hypothesis import strategies as st
from kueue_fuzz import case, fuzz, world

from harness_plugins.kueue.conformance.cycles import answer

RECORDED = Path(__file__).parents[2] / "conformance" / "kueue-cycles-dev-first-200.jsonl.gz"


def test_the_restatement_replays_recorded_traces_as_the_real_code_did() -> None:
    """Every decision, its cycle, and who waits at the end."""
    with gzip.open(RECORDED, "rt") as lines:
        for each in map(json.loads, islice(lines, 20)):
            assert plain_cycles.answer(each) == each["expect"], each["id"]


@fuzz(80)
@given(seed=st.integers(0, 2**32), jobs=st.integers(2, 35))
def test_schedules_are_those_of_the_restatement(seed: int, jobs: int) -> None:
    """Every decision with its flavors, its cycle and its reason, and the number of cycles in all."""
    asked = case(world(seed, jobs))
    try:
        expected = plain_cycles.answer(asked)
    except plain_cycles.LoopError:
        assume(False)
    found = answer(asked)
    assert found["decisions"] == expected["decisions"]
    assert found == expected
