"""Requests whose runs are measured further in the same process, once they have been replayed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Self

from harness.plugins import Plugins, load
from harness.runs.plan import Plan
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.store import with_windows


class FurtherRequest(Request):
    """A request whose run is measured further while all of its tables are there.

    Attributes:
        whole: what the run is made by before.
    """

    whole: ClassVar[type[Request]] = Request

    @classmethod
    def of(cls, request: Request) -> Self:
        """The same request, measured so."""
        return cls(**settings_of(request))

    @abstractmethod
    def measured(
        self,
        run: Run,
        plugins: Plugins,
        plan: Plan | None,
        watch: Callable[[int, int], None] | None,
        command: str | None,
    ) -> Run:
        """The run with what is measured of it further; as it is if that was done before."""

    def run(
        self,
        *,
        plugins: Plugins | None = None,
        plan: Plan | None = None,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Carry it out, as `Request.run` does, and measure the run further.

        Raises:
            HarnessError: whatever stopped one of the replays.
        """
        plugins = plugins or load()
        whole = self.whole(**settings_of(self) | {"keep": "all"})
        run = whole.run(plugins=plugins, plan=plan, watch=watch, command=command)
        run = self.measured(run, plugins, plan, watch, command)
        if self.keep != "all":
            run = with_windows(run, run.windows, self.keep)
        run.request = self
        return run


def settings_of(request: Request) -> dict[str, Any]:
    """All that is asked for, by name."""
    return {item.name: getattr(request, item.name) for item in fields(request)}
