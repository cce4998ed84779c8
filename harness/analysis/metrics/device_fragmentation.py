"""Fragmentation of devices as FGD defines it, which is the free capacity that typical pods cannot use.

The definition is that of `harness.models.kube.placement.fragmentation`. Every pod of the run counts as a
typical pod. A run does not record which GPU models its pods require, so harness assumes that every pod can
run on any model. Slices of GPUs (MIG) are treated as devices of fixed sizes. If a pod does not request the
profile of a free slice, that slice is a fragment for the pod.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from operator import le
from typing import TypeAlias

import polars as pl

from harness.analysis.metrics.pod_sizes import PodSizes, pod_sizes
from harness.analysis.metrics.utilization import capacity_of_slices
from harness.base.arrays import NEVER, numbers
from harness.cluster.devices import MILLI_GPU, SHARES, WHOLE, thousandths
from harness.cluster.kinds.pods import DEFAULT_CPU, PodSpec
from harness.cluster.mig import SLICES, profile_of
from harness.cluster.model import Node, frozen
from harness.models.kube.devices import ask_of
from harness.models.kube.placement.fragmentation import Fragmentation, Usual
from harness.plugins.measurement import SHARE, Measurement, Window
from harness.runs.run import Run

_ANYWHERE = Node("any", frozen({}))
_COLUMNS = ("time", "job", "pod_number", "action", "node", "detail")
_OVER = ("finish", "gone")
_MOST_KNOWN = 200_000
"""The maximum number of node states that are remembered."""

_Pods: TypeAlias = Counter[tuple[int, tuple[tuple[str, int], ...]]]


def measure(run: Run, window: Window) -> Iterator[Measurement]:
    """Yields the share of GPU capacity that was fragmented, for shared GPUs and for GPU slices (MIG).

    Shared GPUs are left out if no pod has devices. Slices are left out if no pod requests slices.
    """
    resource = next((each for each in run.resources if each in SHARES), None)
    if resource is not None and _names_devices(run):
        whole = run.capacity_time(resource, window)
        if whole:
            lost, pods = _lost(run, window, _Shares)
            share = lost * SHARES[resource] / (pods * WHOLE * whole)
            yield Measurement("fragmentation.fgd", share, SHARE, "lower", resource=resource)
    if any(map(profile_of, run.resources)) and run.info["cluster"].get("allocatable"):
        whole = capacity_of_slices(run, window)
        if whole:
            lost, pods = _lost(run, window, _Slices)
            others = whole - (capacity_of_slices(run, window, run.resources) or 0)
            share = (lost + pods * others) / (pods * whole)
            yield Measurement("fragmentation.fgd", share, SHARE, "lower", resource=SLICES)


def _names_devices(run: Run) -> bool:
    batches = run.batches("decisions", ("detail",))
    return any(each["detail"].str.contains('"devices"', literal=True).any() for each in batches)


class _Shares:
    """Measures the fragments of shared GPUs from the free capacity of each device, in thousandths.

    `pods` counts the pods for each pair of a CPU request and the whole request.
    """

    def __init__(self, pods: _Pods) -> None:
        counts: Counter[tuple[int, int]] = Counter()
        for (cpu, asked), count in pods.items():
            counts[cpu, thousandths(dict(asked))] += count
        self._usual = Fragmentation(
            Usual(count, cpu, ask_of({MILLI_GPU: amount}), PodSpec())
            for (cpu, amount), count in counts.items()
        )
        self.total = self._usual.total

    def has(self, amounts: Mapping[str, int]) -> list[int]:
        return [WHOLE] * (thousandths(amounts) // WHOLE)

    def takes(self, asked: Mapping[str, int], devices: Sequence[int]) -> dict[int, int]:
        amount = thousandths(asked)
        return dict.fromkeys(devices, amount if amount % WHOLE else WHOLE)

    def of(self, cpu: int, left: Sequence[int]) -> int:
        return self._usual.of(_ANYWHERE, cpu, [max(0, each) for each in left])


class _Slices:
    """Measures the fragments of GPUs that are divided into slices, from the free slices of each profile.

    If a pod fits on a node, the slices of all other profiles are fragments, because the pod cannot use them.
    `pods` counts the pods for each pair of a CPU request and the whole request.
    """

    def __init__(self, pods: _Pods) -> None:
        names = sorted({name for _, asked in pods for name, _ in asked if profile_of(name)})
        self._compute = {name: profile.compute for name in names if (profile := profile_of(name))}
        counts: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for (cpu, asked), count in pods.items():
            amounts = dict(asked)
            counts[cpu, tuple(amounts.get(name, 0) for name in names)] += count
        self._pods = counts
        self.total = counts.total() or 1
        self._cpus = sorted({least for least, _ in counts})
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}

    def has(self, amounts: Mapping[str, int]) -> list[int]:
        return [amounts.get(name, 0) for name in self._compute]

    def takes(self, asked: Mapping[str, int], devices: Sequence[int]) -> dict[int, int]:
        return {at: asked[name] for at, name in enumerate(self._compute) if asked.get(name)}

    def of(self, cpu: int, left: Sequence[int]) -> int:
        """Returns the fragments of one node in compute slices, summed over all pods."""
        key = bisect_right(self._cpus, cpu), tuple(left)
        if (known := self._known.get(key)) is not None:
            return known
        free = [max(0, each) * compute for each, compute in zip(left, self._compute.values(), strict=True)]
        found = sum(free) * self._pods.total()
        for (least, asked), count in self._pods.items():
            if least <= cpu and all(map(le, asked, left)):
                found -= count * sum(each for each, amount in zip(free, asked, strict=True) if amount)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = found
        return found


def _lost(run: Run, window: Window, kind: type[_Shares | _Slices]) -> tuple[int, int]:
    """Returns the fragments, summed over time and typical pods, and the number of these pods."""
    sizes = pod_sizes(run)
    asked = [
        {name: int(amount[size]) for name, amount in zip(run.resources, sizes.each, strict=True)}
        for size in range(len(sizes.each[0]))
    ]
    usual = kind(_pods(sizes, asked))
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


def _pods(sizes: PodSizes, asked: list[dict[str, int]]) -> _Pods:
    counts: _Pods = Counter()
    for job, pods in enumerate(sizes.pods.tolist()):
        parts = (
            [(each.size, each.pods) for each in sizes.unequal[job]] if job in sizes.unequal else [(job, pods)]
        )
        for size, count in parts:
            amounts = asked[size]
            least = (amounts["cpu"] or DEFAULT_CPU) if "cpu" in amounts else 0
            counts[least, tuple(amounts.items())] += count
    return counts


class _Nodes:
    """The free resources of nodes, and the fragments of all nodes together, summed over typical pods."""

    def __init__(self, run: Run, usual: _Shares | _Slices) -> None:
        pools = run.info["cluster"].get("allocatable", [])
        self._usual = usual
        self._amounts: dict[str, Mapping[str, int]] = {
            name: pool["amounts"] for pool in pools for name in pool.get("nodes", [])
        }
        self._others: Mapping[str, int] = next((pool["amounts"] for pool in pools if "nodes" not in pool), {})
        self._left: dict[str, tuple[int, list[int]]] = {}
        self._parts: dict[str, int] = {}  # The fragments of each node that has been examined.
        self._held: dict[int, dict[int, tuple[str, int, Mapping[int, int]]]] = {}
        self.fragments = sum(pool["count"] * usual.of(*self._empty(pool["amounts"])) for pool in pools)
        self._events = [
            (event["at_us"], name, before or {}, after or {})
            for event in run.info["cluster"].get("events", ())
            for name, (before, after) in event.get("allocatable", {}).items()
        ][::-1]
        # The events are in reverse order, so that each node keeps the state before its first change.
        for _, name, before, _ in self._events:
            self._amounts[name] = before

    def changes_by(self, time: int) -> Iterator[int]:
        """Yields the times at which nodes change, up to `time`.

        A change takes effect when the caller requests the next time.
        """
        while self._events and self._events[-1][0] <= time:
            yield self._events[-1][0]
            _, name, before, after = self._events.pop()
            cpu, devices = self._of(name)
            had, has = self._usual.has(before), self._usual.has(after)
            changed = [left + new - old for left, new, old in zip_longest(devices, has, had, fillvalue=0)]
            self._become(name, cpu + after.get("cpu", 0) - before.get("cpu", 0), changed)

    def bind(
        self, pod: tuple[int, int], name: str, asked: Mapping[str, int], devices: tuple[int, ...]
    ) -> None:
        takes = self._usual.takes(asked, devices)
        self._held.setdefault(pod[0], {})[pod[1]] = name, asked.get("cpu", 0), takes
        self._move(name, -1, asked.get("cpu", 0), takes)

    def free(self, job: int, pod: int | None) -> None:
        held = self._held.get(job, {})
        for each in list(held) if pod is None else [pod]:
            if each in held:
                name, cpu, takes = held.pop(each)
                self._move(name, 1, cpu, takes)

    def _move(self, name: str, sign: int, cpu: int, takes: Mapping[int, int]) -> None:
        left, has = self._of(name)
        changed = list(has)
        changed += [0] * (1 + max(takes, default=-1) - len(changed))
        for device, amount in takes.items():
            changed[device] += sign * amount
        self._become(name, left + sign * cpu, changed)

    def _of(self, name: str) -> tuple[int, list[int]]:
        known = self._left.get(name)
        if known is None:
            known = self._left[name] = self._empty(self._amounts.get(name, self._others))
            self._parts[name] = self._usual.of(*known)
        return known

    def _become(self, name: str, cpu: int, devices: list[int]) -> None:
        part = self._usual.of(cpu, devices)
        self.fragments += part - self._parts[name]
        self._parts[name], self._left[name] = part, (cpu, devices)

    def _empty(self, amounts: Mapping[str, int]) -> tuple[int, list[int]]:
        return amounts.get("cpu", 0), self._usual.has(amounts)
