"""Settings that no other one beats: the Pareto set of some objectives, and who wins and loses there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.analysis.comparison.statistics.frontier import undominated
from harness.plugins.measurement import Measurement
from harness.studies.experiments.objectives import Estimate, Judged, Setting

_OF_QUEUES = Measurement("wait.first_start.mean", None, "s", "lower")


class Outcome(NamedTuple):
    """What a setting leads to.

    Attributes:
        setting: which one.
        values: one for each objective.
        best: whether no other setting is as good in all objectives and better in one.
    """

    setting: Setting
    values: Sequence[Estimate]
    best: bool


class Shift(NamedTuple):
    """How long jobs of a queue wait on average, against the first setting of the experiment, in seconds."""

    queue: str
    before: Estimate
    after: Estimate

    @property
    def longer(self) -> float:
        """By how much longer they wait, below 0 if they wait less."""
        return self.after.value - self.before.value


def outcomes(judged: Judged) -> list[Outcome]:
    """What every setting leads to.

    Those that lack a value are left out, such as of a percentile that some of their seeds have not reached.
    """
    columns = [judged.estimates(each) for each in judged.objectives]
    whole: list[tuple[Setting, list[Estimate]]] = []
    for setting in judged.settings:
        values = [each for column in columns if (each := column[setting.item]) is not None]
        if len(values) == len(columns):
            whole.append((setting, values))
    signs = [-1 if each.better == "higher" else 1 for each in judged.objectives]
    costs = [[sign * each.value for sign, each in zip(signs, values, strict=True)] for _, values in whole]
    best = undominated(costs)
    return [Outcome(setting, values, at in best) for at, (setting, values) in enumerate(whole)]


def shifts(judged: Judged) -> Mapping[int, Sequence[Shift]]:
    """Setting, by its first item -> how the waits of queues changed, from the one that won most on."""
    first = judged.settings[0].item
    found: dict[int, list[Shift]] = {setting.item: [] for setting in judged.settings}
    for scope in judged.scopes("queue"):
        means = judged.estimates(_OF_QUEUES._replace(scope=scope))
        before = means[first]
        for item, after in means.items():
            if before is not None and after is not None and item != first:
                found[item].append(Shift(scope.partition("=")[2], before, after))
    return {item: sorted(of, key=lambda each: each.longer) for item, of in found.items()}
