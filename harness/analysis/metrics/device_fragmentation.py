"""FGD's fragmentation over time, of runs whose pods have devices: what is free and of no use to usual pods.

The measure is that of `harness.models.kube.placement.fragmentation`. Usual pods are all pods of the run. A
run does not keep which models pods need, so every pod may run everywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

import polars as pl

from harness.analysis.metrics.pod_sizes import PodSizes, pod_sizes
from harness.base.arrays import NEVER, numbers
from harness.cluster.devices import SHARES, WHOLE, thousandths
from harness.cluster.kinds.pods import DEFAULT_CPU, PodSpec
from harness.cluster.model import Node, frozen
from harness.models.kube.devices import ask_of
from harness.models.kube.placement.fragmentation import Fragmentation, Usual
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.runs.run import Run

_ANYWHERE = Node("any", frozen({}))
_COLUMNS = ("time", "job", "pod_number", "action", "node", "detail")
_OVER = ("finish", "gone")


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """The part of the GPUs' capacity that was fragments; nothing of runs in which no pod has devices."""
    resource = next((each for each in run.resources if each in SHARES), None)
    if resource is None or not _names_devices(run):
        return
    whole = run.capacity_time(resource, window)
    if whole:
        lost, pods = _lost(run, window)
        share = lost * SHARES[resource] / (pods * WHOLE * whole)
        yield Measurement("fragmentation.fgd", share, SHARE, "lower", resource=resource)


def _names_devices(run: Run) -> bool:
    batches = run.batches("decisions", ("detail",))
    return any(each["detail"].str.contains('"devices"', literal=True).any() for each in batches)


def _lost(run: Run, window: Window) -> tuple[int, int]:
    """The fragments, summed up over time and usual pods, and how many pods these are."""
    sizes = pod_sizes(run)
    asked = [
        {name: int(amount[size]) for name, amount in zip(run.resources, sizes.each, strict=True)}
        for size in range(len(sizes.each[0]))
    ]
    usual = Fragmentation(_usual(sizes, asked))
    nodes = _Nodes(run, usual)
    lost, since = 0, window.start
    for batch in run.batches("decisions", _COLUMNS):
        time, job, pod = numbers(batch, "time", "job", "pod_number")
        of = sizes.of(job, pod).tolist()
        texts = zip(
            *(batch[name].cast(pl.String).to_list() for name in ("action", "node", "detail")), strict=True
        )
        rows = zip(time.tolist(), job.tolist(), pod.tolist(), of, texts, strict=True)
        for at, number, which, size, (action, node, detail) in rows:
            if at >= window.end:
                break
            if action != "bind" and action not in _OVER:
                continue
            for moment in chain(nodes.changes_by(at), (at,)):
                lost += nodes.fragments * max(0, moment - since)
                since = max(since, moment)
            if action == "bind":
                nodes.bind((number, which), node, asked[size], json.loads(detail or "{}").get("devices", ()))
            else:
                nodes.free(number, None if which == NEVER else which)
    for moment in chain(nodes.changes_by(window.end), (window.end,)):
        lost += nodes.fragments * max(0, moment - since)
        since = max(since, moment)
    return lost, usual.total


def _usual(sizes: PodSizes, asked: list[dict[str, int]]) -> Iterator[Usual]:
    """All pods of a run, those together that ask for the same processors and devices."""
    counts: Counter[tuple[int, int]] = Counter()
    for job, pods in enumerate(sizes.pods.tolist()):
        parts = (
            [(each.size, each.pods) for each in sizes.unequal[job]] if job in sizes.unequal else [(job, pods)]
        )
        for size, count in parts:
            amounts = asked[size]
            counts[amounts.get("cpu", 0) or DEFAULT_CPU, thousandths(amounts)] += count
    for (cpu, amount), count in counts.items():
        yield Usual(count, cpu, ask_of({"nvidia.com/gpu-milli": amount}), PodSpec())


class _Nodes:
    """What nodes have left, and the fragments of all of them together.

    Args:
        run: the run.
        usual: the measure.

    Attributes:
        fragments: summed up over usual pods.
    """

    def __init__(self, run: Run, usual: Fragmentation) -> None:
        pools = run.info["cluster"].get("allocatable", [])
        self._usual = usual
        self._amounts: dict[str, Mapping[str, int]] = {
            name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])
        }
        self._others: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
        self._left: dict[str, tuple[int, list[int]]] = {}
        self._parts: dict[str, int] = {}  # the fragments of each node that was looked at
        self._held: dict[int, dict[int, tuple[str, int, tuple[int, ...], int]]] = {}
        self.fragments = sum(pool["count"] * usual.of(_ANYWHERE, *_empty(pool["amounts"])) for pool in pools)
        self._events = [
            (event["at_us"], name, before or {}, after or {})
            for event in run.info["cluster"].get("events", ())
            for name, (before, after) in event.get("allocatable", {}).items()
        ][::-1]
        for _, name, before, _ in self._events:  # the first change of each node comes last
            self._amounts[name] = before

    def changes_by(self, time: int) -> Iterator[int]:
        """The times at which nodes change until then; each change takes effect when the next is asked for."""
        while self._events and self._events[-1][0] <= time:
            yield self._events[-1][0]
            _, name, before, after = self._events.pop()
            cpu, devices = self._of(name)
            had, has = (thousandths(amounts) // WHOLE for amounts in (before, after))
            more = max(len(devices), has)
            changed = [
                (devices[each] if each < len(devices) else 0) + WHOLE * ((each < has) - (each < had))
                for each in range(more)
            ]
            self._become(name, cpu + after.get("cpu", 0) - before.get("cpu", 0), changed)

    def bind(
        self, pod: tuple[int, int], name: str, asked: Mapping[str, int], devices: tuple[int, ...]
    ) -> None:
        """A pod is on a node from now on."""
        amount = thousandths(asked)
        share = amount if amount % WHOLE else WHOLE
        self._held.setdefault(pod[0], {})[pod[1]] = name, asked.get("cpu", 0), devices, share
        self._move(name, -asked.get("cpu", 0), devices, -share)

    def free(self, job: int, pod: int | None) -> None:
        """A pod of a job is gone; all that are there where it is not said which."""
        held = self._held.get(job, {})
        for each in list(held) if pod is None else [pod]:
            if each in held:
                name, cpu, devices, share = held.pop(each)
                self._move(name, cpu, devices, share)

    def _move(self, name: str, cpu: int, devices: tuple[int, ...], share: int) -> None:
        left, has = self._of(name)
        changed = list(has)
        changed += [0] * (1 + max(devices, default=-1) - len(changed))
        for device in devices:
            changed[device] += share
        self._become(name, left + cpu, changed)

    def _of(self, name: str) -> tuple[int, list[int]]:
        known = self._left.get(name)
        if known is None:
            known = self._left[name] = _empty(self._amounts.get(name, self._others))
            self._parts[name] = self._usual.of(_ANYWHERE, *known)
        return known

    def _become(self, name: str, cpu: int, devices: list[int]) -> None:
        part = self._usual.of(_ANYWHERE, cpu, [max(0, left) for left in devices])
        self.fragments += part - self._parts[name]
        self._parts[name], self._left[name] = part, (cpu, devices)


def _empty(amounts: Mapping[str, int]) -> tuple[int, list[int]]:
    """What is left of processors and devices of a node without pods."""
    return amounts.get("cpu", 0), [WHOLE] * (thousandths(amounts) // WHOLE)
