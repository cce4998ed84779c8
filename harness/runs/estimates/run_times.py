"""Holds the run times of unfinished work from the manifests. `unfinished_work` determines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.values import Value, fixed
from harness.cluster.model import Cluster, frozen
from harness.policy import ENDLESS, Arrival
from harness.runs.settings import DRAW, DROP

if TYPE_CHECKING:
    from harness.plugins import Plugins
    from harness.plugins.registries import PolicySpec
    from harness.runs.at_start import AtStart
    from harness.trace.shake import Twin
    from harness.trace.trace import Trace


@fixed(slots=False)
class RunTimesOfWork(Value):
    """The run times that unfinished work from the manifests has in one replay.

    Attributes:
        choice: the setting `unfinished` (see `harness.runs.settings.Given`), which is `draw`, `drop`, `limit`
            or a run time; "" if no such work takes part.
        times: maps `namespace/name` to the run time in microseconds, if it is known.
        said: a sentence with the number of workloads and how they are treated, or "" if none takes part.
        unknown: a sentence that says why some run times are unknown, or "" if all are known.
    """

    choice: str = ""
    seed: int = 0
    times: Mapping[str, int] = field(default_factory=frozen)
    said: str = ""
    unknown: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The choice and, if run times are drawn, the seed. They are part of what identifies a replay."""
        if not self.choice:
            return {}
        return {"unfinished": self.choice, **({"seed": self.seed} if self.choice == DRAW else {})}

    @property
    def told(self) -> dict[str, Any]:
        """The entries in `run.json` about this work."""
        about = {"said": self.said, **({"unknown": self.unknown} if self.unknown else {})}
        return {"unfinished": about} if self.said else {}

    def of(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Returns the arrivals of work that a policy takes over, with their run times."""
        found: list[Arrival] = []
        for job, time, *more in arrivals:
            found.append((job, self.times.get(job.id, time) if time == ENDLESS else time, *more))
        return found


class Material(NamedTuple):
    """The inputs from which the run times of unfinished work are determined.

    Attributes:
        plugins: the plugins whose readers read the ended work in the manifests.
    """

    cluster: Cluster
    trace: Trace
    policy: PolicySpec
    plugins: Plugins


def beginning(
    begun: AtStart, of: Material, choice: str, seed: int, twin: Twin | None
) -> tuple[AtStart, RunTimesOfWork]:
    """Determine which work in the manifests takes part in a replay, and how long it runs.

    If `choice`, which is the setting `unfinished`, is `drop`, all work that ends on its own is omitted. Each
    twin has its own draws.
    """
    if of.policy.running is None or not begun.takes_part:
        return begun, RunTimesOfWork()
    from harness.runs.estimates.unfinished_work import Work  # Most replays have no such work.

    work = Work(begun, of)
    found = work.run_times(choice, seed, twin)
    return work.dropped if found.choice == DROP else begun, found
