"""Requests that replay a trace, and then measure the finished run further in the same process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Self

from harness.plugins import Plugins, load
from harness.runs.plan import Plan
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.store import with_windows


class How(NamedTuple):
    """The arguments of `Request.run`, with loaded plugins."""

    plugins: Plugins
    plan: Plan | None
    watch: Callable[[int, int], None] | None
    command: str | None


class FurtherRequest(Request):
    """A request that creates a run, and then adds further measurements to it.

    The measurements are made in the same process, which still has all tables of the run.

    Attributes:
        whole: the class of the request that creates the run.
    """

    whole: ClassVar[type[Request]] = Request

    @classmethod
    def of(cls, request: Request) -> Self:
        """Returns a request, converted to this class."""
        return cls(**settings_of(request))

    @abstractmethod
    def measured(self, run: Run, how: How) -> Run:
        """Returns the run with the further measurements, or unchanged if it already has them."""

    def run(
        self,
        *,
        plugins: Plugins | None = None,
        plan: Plan | None = None,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Carry out the request in the same way as `Request.run`, then make the further measurements.

        Raises:
            HarnessError: the error that stopped a replay.
        """
        plugins = plugins or load()
        whole = self.whole(**settings_of(self) | {"keep": "all"})
        run = whole.run(plugins=plugins, plan=plan, watch=watch, command=command)
        run = self.measured(run, How(plugins, plan, watch, command))
        if self.keep != "all":
            run = with_windows(run, run.windows, self.keep)
        run.request = self
        return run


def settings_of(request: Request) -> dict[str, Any]:
    """Returns all settings of a request, by name."""
    return {item.name: getattr(request, item.name) for item in fields(request)}
