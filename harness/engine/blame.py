"""Adds the time of the replay and the responsible policy to an error.

This module stays plain Python in the compiled build, because mypyc would give all variables named `error` in
one function the type of the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError

from harness.base.errors import InputError, PolicyError, is_of_plugin, text_of, told
from harness.base.units import format_duration
from harness.engine.events import UnwritableError
from harness.engine.lifecycle import Lifecycle
from harness.engine.referee import Referee

_OURS = ("harness.base.tables", "harness.engine", "harness.runs", "harness.trace")
"""The code that replays and records, in contrast to the code of policies."""

_CALLS_CYCLE = "harness.engine.engine"
_DEBUG = "--debug shows where"
_NO_DECISIONS = "'cycle' must return decisions: write them with 'yield', or return an empty tuple"
_METHODS = f"a policy has submit(job, pods, now), release(job, pods, now, why) and cycle(now); {_DEBUG}"
_VALUES = f"a decision, or an argument for the view, has a wrong value; {_DEBUG}"
_READ_ONLY = f"jobs, pod sets and the cluster cannot be changed, so keep your own data elsewhere; {_DEBUG}"


@contextmanager
def blamed(name: str, lifecycle: Lifecycle, referee: Referee) -> Iterator[None]:
    """Add the simulated time and the name of the policy to errors that occur in the block."""
    try:
        yield
    except UnwritableError as error:
        referee.refuse(error.job, error.rule)
    except InputError as error:
        if not _module_of(error).startswith(_OURS):
            error.within(f"policy {name}, at {_told_time(lifecycle.now)}")
        raise
    except BaseException as error:
        at = _told_time(lifecycle.now)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(f"policy {name} was at {at}")
        if not is_of_plugin(error):
            raise
        raise PolicyError(f"policy {name} failed at {at}: {told(error)}", hint=_hint(error)) from error


def _hint(error: BaseException) -> str:
    module, text = _module_of(error), text_of(error)
    if isinstance(error, FrozenInstanceError) or "mappingproxy" in text:
        return _READ_ONLY
    if not module.startswith(_OURS):
        return _DEBUG
    if "positional argument" in text:
        return _METHODS
    return _NO_DECISIONS if module == _CALLS_CYCLE and text.endswith("not iterable") else _VALUES


def _told_time(now: int) -> str:
    return f"{now} microseconds ({format_duration(now)} after the origin)"


def _module_of(error: BaseException) -> str:
    """Returns the module that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
