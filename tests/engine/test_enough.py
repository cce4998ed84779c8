"""A replay that is over when whoever watches it has seen enough."""

from __future__ import annotations

from policies import Greedy

from harness.base.units import SECOND
from harness.engine import Engine
from harness.testing import Decisions, Script, pool


def test_a_replay_ends_with_the_instant_after_which_enough_was_seen() -> None:
    """The third job never arrives."""
    jobs = Script().job("a", cpu=1, seconds=5).job("b", at=10, cpu=1).job("c", at=20, cpu=1)
    seen = Decisions()
    engine = Engine(
        jobs.chunks(), pool(cpu=1), seen, until=30 * SECOND, enough=lambda: len(seen.of("submit")) == 2
    )
    outcome = engine.run(Greedy(pool(cpu=1), engine.view, {}))
    assert outcome.jobs == 2
    assert outcome.end == 10 * SECOND
