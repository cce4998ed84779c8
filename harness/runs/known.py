"""What several metrics ask of one run is found out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from harness.runs.run import Run

P = ParamSpec("P")
T = TypeVar("T")


def once(find: Callable[Concatenate[Run, P], T]) -> Callable[Concatenate[Run, P], T]:
    """Keep the answers to a question about runs as long as somebody has the run; nobody may change them."""
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
    """Keep the answers to a question about runs while a run is asked much; nobody may change them."""

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
