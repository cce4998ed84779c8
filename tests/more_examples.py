"""How many examples a property tries: a 24th of its number, or a multiple of it by the environment."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def times(variable: str) -> int:
    """How many times more an environment variable asks for."""
    return int(os.environ.get(variable, "1"))


def examples(count: int, variable: str = "EXAMPLES", *, fixtures: bool = False) -> settings:
    """A 24th of so many examples, always the same ones.

    A variable of 1 asks for all of them, and a larger one for more, from other seeds each time. With
    `fixtures` all examples share those of one function.
    """
    more = times(variable)
    return settings(
        max_examples=count * more if variable in os.environ else max(2, count // 24),
        deadline=None,
        derandomize=more == 1,
        suppress_health_check=(HealthCheck.too_slow, *[HealthCheck.function_scoped_fixture] * fixtures),
    )
