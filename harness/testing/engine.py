"""The engine and its recorder interface, for callers that call the engine themselves.

For example, a conformance test replays a recorded case, and compares the decisions of a policy.
"""

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
    "ACTIONS", "ADMIT", "BIND", "EVICT", "FINISH", "GONE", "MARK", "NOMINATE", "PENDING", "PREEMPT",
    "REPLACE", "UNMARK", "UNNOMINATE", "Engine", "Fact",
]  # fmt: skip
