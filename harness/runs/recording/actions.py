"""Actions as the codes that they are recorded by, and how they move levels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from harness.base.arrays import Ints, codes
from harness.engine.events import ACTIONS, BIND, FINISH, GONE, REJECT, REQUEUE, SUBMIT

_NAMES = pl.Enum(ACTIONS)


def action_codes(column: pl.Series) -> Ints:
    """The codes of actions that are given by their names."""
    return codes(column.cast(_NAMES))


def by_action(moves: Mapping[int, int]) -> Ints:
    """For each action, by its code, how far it moves a level."""
    return np.array([moves.get(action, 0) for action in range(len(ACTIONS))], np.int64)


BOUND = by_action({BIND: 1, GONE: -1, FINISH: -1})
"""Of what pods hold that are bound one by one."""

ASKED = by_action({SUBMIT: 1, REQUEUE: 1, REJECT: -1})
"""Of what is asked for, apart from what is held."""
