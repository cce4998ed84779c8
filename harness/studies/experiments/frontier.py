"""Computes the Pareto set of some objectives, and the changes in the waits of queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.analysis.comparison.statistics.frontier import undominated
from harness.plugins.measurement import Measurement
from harness.studies.experiments.objectives import Estimate, Judged, Setting
from harness.studies.experiments.requests import GIVEN

_OF_QUEUES = Measurement("wait.first_start.mean", None, "s", "lower")


class Outcome(NamedTuple):
    """The outcome of a setting.

    Attributes:
        best: whether the setting is in the Pareto set. If it is, no other setting with the same
            `circumstances`, such as the same trace, is at least as good in all objectives and better in at
            least one.
    """

    setting: Setting
    values: Sequence[Estimate]
    best: bool


class Shift(NamedTuple):
    """The mean wait of a queue's jobs in a setting and in the experiment's first setting, in seconds."""

    queue: str
    before: Estimate
    after: Estimate

    @property
    def longer(self) -> float:
        """The increase of the wait; negative if jobs wait less."""
        return self.after.value - self.before.value


def outcomes(judged: Judged) -> list[Outcome]:
    """Returns the outcome of every setting.

    A setting is left out if an objective has no value, for example because a percentile was not reached with
    any seed.
    """
    columns = [judged.estimates(each) for each in judged.objectives]
    whole: list[tuple[Setting, list[Estimate]]] = []
    for setting in judged.settings:
        values = [each for column in columns if (each := column[setting.item]) is not None]
        if len(values) == len(columns):
            whole.append((setting, values))
    signs = [-1 if each.better == "higher" else 1 for each in judged.objectives]
    best: set[int] = set()
    for places in _alike(judged, [setting for setting, _ in whole]):
        costs = [[sign * each.value for sign, each in zip(signs, whole[at][1], strict=True)] for at in places]
        best |= {places[one] for one in undominated(costs)}
    return [Outcome(setting, values, at in best) for at, (setting, values) in enumerate(whole)]


def frontier(judged: Judged, found: Sequence[Outcome]) -> list[Outcome]:
    """Returns the settings in the Pareto set, grouped by `circumstances`, such as by the trace."""
    best = [each for each in found if each.best]
    return [best[at] for places in _alike(judged, [each.setting for each in best]) for at in places]


def _alike(judged: Judged, settings: Sequence[Setting]) -> list[list[int]]:
    names, found = circumstances(judged), dict[tuple[Any, ...], list[int]]()
    for at, setting in enumerate(settings):
        found.setdefault(tuple(setting.point[name] for name in names), []).append(at)
    return list(found.values())


def circumstances(judged: Judged) -> list[str]:
    """Returns the factors that are circumstances, which nobody can choose in a real cluster.

    Circumstances are the trace, changes to the trace, and the costs of preemption. For example, settings with
    different loads cannot beat each other.
    """
    varied = judged.experiment.factors.items()
    return [name for name, values in varied if name in GIVEN and len(values) > 1]


def shifts(judged: Judged) -> Mapping[int, Sequence[Shift]]:
    """Maps the first item of each setting to the changes of queues' waits, with the largest gain first."""
    first = judged.settings[0].item
    found: dict[int, list[Shift]] = {setting.item: [] for setting in judged.settings}
    for scope in judged.scopes("queue"):
        means = judged.estimates(_OF_QUEUES._replace(scope=scope))
        before = means[first]
        for item, after in means.items():
            if before is not None and after is not None and item != first:
                found[item].append(Shift(scope.partition("=")[2], before, after))
    return {item: sorted(of, key=lambda each: each.longer) for item, of in found.items()}
