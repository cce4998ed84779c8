"""The engine and its recorder interface, for callers that run a policy through a recorded case themselves."""

from __future__ import annotations

from harness.engine import Engine
from harness.engine.events import (
    ACTIONS,
    ADMIT,
    BIND,
    EVICT,
    FINISH,
    GONE,
    MARK,
    NOMINATE,
    PENDING,
    PREEMPT,
    REPLACE,
    UNMARK,
    UNNOMINATE,
    Fact,
)

__all__ = [
    "ACTIONS",
    "ADMIT",
    "BIND",
    "EVICT",
    "FINISH",
    "GONE",
    "MARK",
    "NOMINATE",
    "PENDING",
    "PREEMPT",
    "REPLACE",
    "UNMARK",
    "UNNOMINATE",
    "Engine",
    "Fact",
]
