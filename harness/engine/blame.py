"""Adds the time of the replay and the responsible policy to an error.

This module stays plain Python in the compiled build, because mypyc would give all variables named `error` in
one function the type of the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError

from harness.base.errors import InputError, PolicyError, is_of_plugin, told
from harness.base.units import format_duration
from harness.engine.events import UnwritableError
from harness.engine.lifecycle import Lifecycle
from harness.engine.referee import Referee

_OURS = ("harness.base.tables", "harness.engine", "harness.runs", "harness.trace")
_DEBUG = "--debug shows where"
_NO_DECISIONS = "'cycle' must return decisions: write them with 'yield', or return an empty tuple"
_READ_ONLY = f"jobs, pod sets and the cluster cannot be changed, so keep your own data elsewhere; {_DEBUG}"


@contextmanager
def blamed(name: str, lifecycle: Lifecycle, referee: Referee) -> Iterator[None]:
    """Add the simulated time and the name of the policy to errors that occur in the block."""
    try:
        yield
    except UnwritableError as error:
        referee.refuse(error.job, error.rule)
    except InputError as error:
        if not _is_ours(error):
            error.within(f"policy {name}, at {_told_time(lifecycle.now)}")
        raise
    except BaseException as error:
        if not is_of_plugin(error):
            raise
        hint = _READ_ONLY if isinstance(error, FrozenInstanceError) else _DEBUG
        if isinstance(error, TypeError) and str(error).endswith("not iterable") and _is_ours(error):
            hint = _NO_DECISIONS
        at = _told_time(lifecycle.now)
        raise PolicyError(f"policy {name} failed at {at}: {told(error)}", hint=hint) from error


def _told_time(now: int) -> str:
    return f"{now} microseconds ({format_duration(now)} after the origin)"


def _is_ours(error: BaseException) -> bool:
    """Returns True if an error comes from the code that replays and records, and not from the policy."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith(_OURS)
