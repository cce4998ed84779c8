"""The recorded codes of actions, and how actions change the held and requested quantities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from harness.base.arrays import Ints, codes
from harness.engine.events import ACTIONS, BIND, FINISH, GONE, REJECT, REQUEUE, SUBMIT

_NAMES = pl.Enum(ACTIONS)


def action_codes(column: pl.Series) -> Ints:
    """Returns the codes of the named actions."""
    return codes(column.cast(_NAMES))


def by_action(moves: Mapping[int, int]) -> Ints:
    """Returns an array with one entry per action code: how the action changes a quantity.

    An entry is 1 if the quantity grows by the request, -1 if it shrinks by the request, or 0.
    """
    return np.array([moves.get(action, 0) for action in range(len(ACTIONS))], np.int64)


BOUND = by_action({BIND: 1, GONE: -1, FINISH: -1})
"""How actions change the held quantities of pods that are bound one by one."""

ASKED = by_action({SUBMIT: 1, REQUEUE: 1, REJECT: -1})
"""How actions change the requested quantities, regardless of what is held."""
