"""How long unfinished work of the manifests runs in a replay, as `unfinished_work` found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.base.errors import InputError, OptionError
from harness.base.units import LONGEST, exact_duration, parse_duration
from harness.base.values import Value, fixed
from harness.cluster.model import frozen
from harness.policy import ENDLESS, Arrival

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins import Plugins
    from harness.plugins.registries import PolicySpec
    from harness.runs.at_start import AtStart
    from harness.trace.shake import Twin
    from harness.trace.trace import Trace

DRAW, DROP, LIMIT = "draw", "drop", "limit"


def checked_unfinished(text: str) -> str:
    """What is to be done with unfinished work, a run time as it is written in the end.

    Raises:
        OptionError: it is neither a word nor a run time.
    """
    if text in (DRAW, DROP, LIMIT):
        return text
    hint = f"write {DRAW}, {DROP}, {LIMIT}, or the run time of each, such as 2h"
    try:
        time = parse_duration(text)
    except InputError as error:
        raise OptionError(f"unfinished: {text!r} is not understood", hint=hint) from error
    if not 0 < time <= LONGEST:
        raise OptionError(f"unfinished: {text!r} is not above 0 and up to 100 years", hint=hint)
    return exact_duration(time)


@fixed(slots=False)
class RunTimesOfWork(Value):
    """How long the unfinished work of the manifests runs in one replay.

    Attributes:
        choice: what is done with it: `draw`, `drop`, `limit` or a run time; "" where none takes part.
        seed: of the draws.
        times: by namespace and name the run times, microseconds, where they are known.
        said: what was done with how many, in a sentence; "" where none takes part.
        unknown: why nobody knows how long some of it runs, in a sentence; "" where all run times are known.
    """

    choice: str = ""
    seed: int = 0
    times: Mapping[str, int] = field(default_factory=frozen)
    said: str = ""
    unknown: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What of it the result of a replay depends on, beside the cluster, the trace and its twin."""
        if not self.choice:
            return {}
        return {"unfinished": self.choice, **({"seed": self.seed} if self.choice == DRAW else {})}

    @property
    def told(self) -> dict[str, Any]:
        """What a run says of it."""
        about = {"said": self.said, **({"unknown": self.unknown} if self.unknown else {})}
        return {"unfinished": about} if self.said else {}

    def of(self, arrivals: Iterable[Arrival]) -> list[Arrival]:
        """Work as a policy takes it over, with its run times."""
        found: list[Arrival] = []
        for job, time, *more in arrivals:
            found.append((job, self.times.get(job.id, time) if time == ENDLESS else time, *more))
        return found


class Material(NamedTuple):
    """What the run times of work can be told by.

    Attributes:
        cluster: the manifests as they are.
        trace: what is replayed.
        policy: who takes the work over.
        plugins: whose readers read what has ended of the manifests.
    """

    cluster: Cluster
    trace: Trace
    policy: PolicySpec
    plugins: Plugins


def beginning(
    begun: AtStart, of: Material, choice: str, seed: int, twin: Twin | None
) -> tuple[AtStart, RunTimesOfWork]:
    """How work of the manifests takes part, and how long it runs.

    Args:
        begun: how it takes part where none is left out for its run time.
        of: what run times can be told by.
        choice: what is to be done with unfinished work.
        seed: of all draws.
        twin: which twin of the trace is replayed; each has draws of its own.
    """
    if of.policy.running is None or not begun.takes_part:
        return begun, RunTimesOfWork()
    from harness.runs.estimates.unfinished_work import (
        Work,  # most replays have no such work, and import nothing of it
    )

    work = Work(begun, *of)
    found = work.run_times(choice, seed, twin)
    return work.dropped if found.choice == DROP else begun, found
