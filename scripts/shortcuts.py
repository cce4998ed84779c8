"""Prints how many function calls each shortcut of the models of schedulers saves.

    PYTHONPATH=tests python scripts/shortcuts.py fairsharing traces/philly.parquet@20d..24d own.parquet 40 100

The script compares the calls without a shortcut with the calls with all shortcuts. An input is a trace, whose
cluster is next to it, or a number of queues. The number stands for the world of `benchmarks.backlog` with so
many queues on two levels, and `40x3` for three levels. The input `racks` stands for the jobs of
`benchmarks.topology`. Calls are counted while the engine runs, so the load of the machine has no influence.
The script needs the plain build.
"""

from __future__ import annotations

import cProfile
import multiprocessing
import tempfile
from collections.abc import Callable, Collection
from typing import Any

import click
from benchmarks import backlog, topology

import harness
from harness.engine import Engine
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.shape_nodes import ShapeNodes
from harness.models.kube.pod import PodInfo, Shape
from harness.models.kube.preemption._dry_runs import DryRuns
from harness.models.kube.preemption.evaluator import Preemption
from harness.models.kube.scheduler import Scheduler as KubeScheduler
from harness.trace.calibration import Calibration
from harness.trace.priorities import PriorityShare
from harness.trace.window import Window
from harness_plugins.elastic_quota.search import on_each
from harness_plugins.elastic_quota.shortcuts.kept_dry_runs import KeptDryRuns
from harness_plugins.elastic_quota.shortcuts.verdicts import KeptRefusals
from harness_plugins.kueue.rules.dominant_resource_share import Shares
from harness_plugins.kueue.shortcuts import no_targets, shortcuts
from harness_plugins.kueue.shortcuts.cached_fit import CachedFits
from harness_plugins.kueue.shortcuts.cached_no_fit import CachedNoFits
from harness_plugins.kueue.shortcuts.heads import EveryCycle
from harness_plugins.kueue.shortcuts.in_vain import InVain
from harness_plugins.kueue.shortcuts.kept_nominations import KeptNominations
from harness_plugins.kueue.shortcuts.kept_out import KeptOut
from harness_plugins.kueue.shortcuts.kept_shares import KeptShares
from harness_plugins.kueue.shortcuts.recorded_oracle import RecordedOracle
from harness_plugins.kueue.shortcuts.resting_heads import RestingHeads
from harness_plugins.kueue.shortcuts.shortcuts import Shortcuts

_EVERYTHING = "all shortcuts"
_JOBS = {40: 300, 100: 400, 500: 300}
"""How many jobs wait, by the number of queues."""


class _Forgets(dict[Any, Any]):
    """A cache that stores nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def _plain(method: str) -> None:
    """Makes a method return the result of the plain rule."""
    setattr(Shortcuts, method, lambda self, *plain: plain[-1])


def _as_given(shortcut: str) -> None:
    """Makes a shortcut return the function that it would speed up."""
    setattr(shortcuts, shortcut, lambda plain: plain)


def _answers(owner: type, answer: Any, *methods: str) -> None:
    """Makes methods return a result without information."""
    for method in methods:
        setattr(owner, method, lambda *args, **kwargs: answer)


def _all_heads() -> None:
    made = Shortcuts.nomination

    def nomination(self: Shortcuts, cache: Any, pending: Any, *args: Any) -> Any:
        return *made(self, cache, pending, *args)[:2], EveryCycle(pending)

    Shortcuts.nomination = nomination  # type: ignore[method-assign, assignment]


def _forgets(owner: Any, *kept: str) -> None:
    """Makes caches store nothing."""
    made = owner.__init__

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        for name in kept:
            setattr(self, name, _Forgets())

    owner.__init__ = begin


def _no_bystanders() -> None:
    """Makes cycles consider all futile heads that may delay other heads."""
    method = "_with_those"
    with_those = getattr(RestingHeads, method)

    def considered(self: Any, looked_at: Any, runs: Any) -> Any:
        found = with_those(self, looked_at, runs) + [head for head, _ in self._bystanders]
        for head, _ in self._bystanders:
            del runs[head.cluster_queue.number]
        self._bystanders.clear()
        return found

    setattr(RestingHeads, method, considered)


def _no_record() -> None:
    """Makes oracles search again at each question."""
    targets = RecordedOracle.targets

    def again(self: Any, *args: Any) -> Any:
        self._known.clear()
        return targets(self, *args)

    RecordedOracle.targets = again  # type: ignore[method-assign, assignment]


def _no_branches() -> None:
    """Makes reasons look again at the quota that preemption could free in the branch of a queue."""
    still = no_targets.FairReasons.still_no_targets

    def again(self: no_targets.FairReasons, why: no_targets.NoTargets) -> bool:
        why.version = -1
        return still(self, why)

    no_targets.FairReasons.still_no_targets = again  # type: ignore[method-assign]


def _no_shapes() -> None:
    """Makes the scheduler evaluate each pod on all nodes."""
    shape_nodes = Scheduling.shape_nodes

    def again(self: Any, shape: Shape) -> ShapeNodes:
        self._shapes.pop(shape, None)
        return shape_nodes(self, shape)

    Scheduling.shape_nodes = again  # type: ignore[method-assign]


def _no_dry_runs() -> None:
    def again(self: Any, pod: PodInfo) -> DryRuns:
        return DryRuns(self._cache, self._budgets)

    Preemption._runs_of = again  # type: ignore[method-assign]  # noqa: SLF001


OF_KUEUE: dict[str, Callable[[], None]] = {
    _EVERYTHING: lambda: None,
    "KeptShares": lambda: setattr(shortcuts, "KeptShares", Shares),
    "kept_offers": lambda: _plain("offers"),
    "kept_topologies": lambda: _as_given("kept_topologies"),
    "kept_suitable_leaves": lambda: _as_given("kept_suitable_leaves"),
    "KeptCapacities": lambda: _as_given("KeptCapacities"),
    "RecordedOracle": _no_record,
    "CachedFits": lambda: _answers(CachedFits, None, "of", "note"),
    "CachedNoFits": lambda: _answers(CachedNoFits, None, "of", "note", "futile"),
    "lacks_quota": lambda: _plain("within_quota"),
    "InVain": lambda: _answers(InVain, None, "run", "reason_changed"),
    "KeptOut": lambda: _answers(KeptOut, 0, "cycles"),
    "Freeable": lambda: _forgets(no_targets.FairReasons, "_known"),
    "Reasons, within a branch": _no_branches,
    "Reasons, within a cycle": lambda: _answers(no_targets.FairReasons, False, "in_vain"),
    "RefusedSides": lambda: _plain("refuses"),
    "KeptShares.ranking": lambda: setattr(KeptShares, "ranking", Shares.ranking),
    "KeptNominations": lambda: _forgets(KeptNominations, "_known"),
    "RestingHeads, with InVain and KeptOut": _all_heads,
    "Bystanders": _no_bystanders,
}

OF_QUOTAS: dict[str, Callable[[], None]] = {
    _EVERYTHING: lambda: None,
    "KeptDryRuns": lambda: setattr(KeptDryRuns, "__call__", lambda self, *asked: on_each(*asked)),
    "KeptRefusals": lambda: _answers(KeptRefusals, None, "of"),
}

OF_KUBE: dict[str, Callable[[], None]] = {
    _EVERYTHING: lambda: None,
    "ShapeNodes": _no_shapes,
    "DryRuns": _no_dry_runs,
    "NoRoom, with Resting": lambda: _answers(KubeScheduler, None, "_lasting"),
}


def _switches(plugin: str) -> dict[str, Callable[[], None]]:
    if plugin in ("elasticquota", "auto"):
        return OF_QUOTAS
    return OF_KUBE if plugin == "default-preemption" else OF_KUEUE


def _run(plugin: str, given: str, priorities: PriorityShare | None, *, idle: bool) -> None:
    if given == "racks":
        topology.replay(plugin)
        return
    queues, _, levels = given.partition("x")
    if queues.isdigit():
        backlog.cost(plugin, _JOBS[int(queues)], queues=int(queues), levels=int(levels or 2))
        return
    path, _, window = given.partition("@")
    part = Calibration(window=Window.parse(window) if window else None, priority_share=priorities)
    with tempfile.TemporaryDirectory() as folder:
        run = harness.replay(path, plugin=plugin, output=folder, calibration=part)
        if idle:
            harness.idle_causes([run], workers=1)


def _count(plugin: str, off: str, given: str, priorities: PriorityShare | None, idle: bool) -> int:
    """Returns the number of calls while the engine runs."""
    _switches(plugin)[off]()
    play, profile = Engine.play, cProfile.Profile()

    def counted(self: Engine, *args: Any) -> None:
        profile.runcall(play, self, *args)

    Engine.play = counted  # type: ignore[method-assign, assignment]
    _run(plugin, given, priorities, idle=idle)
    return sum(each.callcount for each in profile.getstats())


def _apart(*asked: Any) -> int:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_count, asked)


@click.command()
@click.argument("plugin")
@click.argument("inputs", nargs=-1)
@click.option("--without", multiple=True, help="Only these shortcuts.")
@click.option("--priority-share", help="As of `harness replay`, for traces.")
@click.option("--idle-causes", is_flag=True, help="As of `harness replay`, for traces.")
def main(
    plugin: str,
    inputs: Collection[str],
    without: Collection[str],
    priority_share: str | None,
    idle_causes: bool,
) -> None:
    """Print, for each shortcut, how many calls a replay without it makes, by input."""
    priorities = PriorityShare.parse(priority_share) if priority_share else None
    for given in inputs:
        every = _apart(plugin, _EVERYTHING, given, priorities, idle_causes)
        click.echo(f"{plugin}\t{given}\t{_EVERYTHING}\t{every:,}")
        for off in without or list(_switches(plugin))[1:]:
            count = _apart(plugin, off, given, priorities, idle_causes)
            click.echo(f"{plugin}\t{given}\t{off}\t{count / every:.2f}")


if __name__ == "__main__":
    main()
