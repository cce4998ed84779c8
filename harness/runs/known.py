"""Computes an answer about a run only once, even if several metrics need the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from harness.runs.run import Run

P = ParamSpec("P")
T = TypeVar("T")


def once(find: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Decorate a function of a run so that its answers are cached for as long as the run is in use.

    Callers must not modify the answers.
    """
    answers: WeakKeyDictionary[Run, dict[Any, T]] = WeakKeyDictionary()

    @wraps(find)
    def found(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        of_run = answers.setdefault(run, {})
        key = (args, tuple(kwargs.items()))
        if key not in of_run:
            of_run[key] = find(run, *args, **kwargs)
        return of_run[key]

    return found


def meanwhile(find: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Decorate a function of a run so that its answers are cached within `Run.asked_much`.

    Callers must not modify the answers.
    """

    @wraps(find)
    def found(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if run.memory is None:
            return find(run, *args, **kwargs)
        key = (find, args, tuple(kwargs.items()))
        if key not in run.memory:
            run.memory[key] = find(run, *args, **kwargs)
        known: T = run.memory[key]
        return known

    return found
