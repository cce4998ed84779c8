"""How many examples a property of random worlds tries, or as many times more as the environment says."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def times(variable: str) -> int:
    """How many times more an environment variable asks for."""
    return int(os.environ.get(variable, "1"))


def examples(count: int, variable: str) -> settings:
    """So many examples, always the same ones; where more are asked for, from other seeds each time."""
    more = times(variable)
    return settings(
        max_examples=count * more,
        derandomize=more == 1,
        suppress_health_check=(HealthCheck.too_slow,),
    )
