"""Random worlds, which consist of jobs, a cluster and settings, and can be replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from shlex import quote
from typing import Any

import polars as pl

from harness.base.units import INT64_MAX, SECOND, exact_duration, parse_quantity
from harness.cluster.changes.timed import has_times
from harness.cluster.devices import GPU, GPU_COUNT, MILLI_GPU, WHOLE
from harness.cluster.kinds.preemption_strategies import PERMITTED_STRATEGIES
from harness.cluster.load import cluster_from
from harness.cluster.manifests import dump_yaml
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.policy import PolicyFactory
from harness.runs.request import Request
from harness.runs.run import Run
from harness.testing.checks import Broken, check_run
from harness.testing.worlds.chance import Chance
from harness.testing.worlds.clusters import Manifest, elastic, kueue, nodes, pod_group
from harness.testing.worlds.events import events
from harness.testing.worlds.events import node_events as changes_of
from harness.testing.worlds.jobs import PROTECTED, Kin, Row, frame_of, largest_unit, pod_groups, rows
from harness.trace.schema import REQUEST
from harness.trace.trace import Trace
from harness.trace.validate import checked

PLUGINS = ("none", "default-preemption", "kueue-classic", "fairsharing", "elasticquota", "auto")
"""The built-in policies for which a world has options."""

_NEED_NODES = ("default-preemption", "elasticquota", "auto")
_TRACE, _ON_NODES, _POOL = "world.parquet", "nodes.cluster.yaml", "pool.cluster.yaml"
_LOSSES = ("restart", "resume", "checkpoint=7s,restore=2s")
_GATES = ("PrioritizePreemptorWorkloads=true", "ReclaimablePods=false", "PartialAdmission=false", "")
_STRATEGIES = ("", *map(",".join, PERMITTED_STRATEGIES))

_SHARES = (200, 300, 400, 500, 500, 600, 700)


@dataclass(frozen=True, repr=False)
class World:
    """A cluster, a trace and settings.

    Attributes:
        seed: the seed for `random_world`.
        frame: the trace, with one row for each job or pod set.
        pooled: whether policies that don't need nodes get no nodes. The capacity is then the sum of quotas.
        on_preemption: the loss model.
        grace_period: the grace period of jobs without their own, in microseconds.
        until: the time after which the replay ends, in microseconds. None replays to the end.
        options: maps each policy in `PLUGINS` to its options.
    """

    seed: int
    frame: pl.DataFrame
    manifests: Sequence[Manifest]
    pooled: bool
    on_preemption: str
    grace_period: int
    until: int | None
    options: Mapping[str, Mapping[str, str]]

    def __repr__(self) -> str:
        return f"random_world({self.seed})"

    def describe(self) -> str:
        """Returns a short description, which begins with a line of code that generates the same world."""
        kinds = [manifest["kind"] for manifest in self.manifests if not has_times(manifest)]
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)]
        if len(kinds) < len(self.manifests):
            counts.append(f"{len(self.manifests) - len(kinds)} patches with a time")
        asks = [
            f"{name.removeprefix('request.')} {int((self.frame[name] * self.frame['pods']).sum()):,}"
            for name in self.frame.columns
            if name.startswith("request.")
        ]
        jobs, instants = (self.frame[name].n_unique() for name in ("job_id", "submit_time"))
        ends = "" if self.until is None else f", until {exact_duration(self.until)}"
        return "\n".join(
            (
                f"{self!r}: {', '.join(counts)}{'; without nodes where they are not needed' * self.pooled}",
                f"  {jobs} jobs of {self.frame['pods'].sum()} pods at {instants} instants: {', '.join(asks)}",
                f"  {self.on_preemption}, grace {exact_duration(self.grace_period)}{ends}",
                *(f"  {name}: {_settings(options)}" for name, options in self.options.items() if options),
            )
        )

    def uses_nodes(self, plugin: str | PolicyFactory) -> bool:
        """Returns True if a policy gets nodes, because it needs nodes or because the world is not pooled."""
        return not self.pooled or plugin in _NEED_NODES

    @cached_property
    def _file(self) -> bytes:
        buffer = BytesIO()
        self.frame.write_parquet(buffer)
        return buffer.getvalue()

    @cached_property
    def trace(self) -> Trace:
        """The trace, as read from the file of `write`."""
        frame, faults = checked(self.frame)
        assert not faults, (self, faults)
        sha256 = hashlib.sha256(self._file).hexdigest()
        return Trace(Path(_TRACE), frame, "duration", None, 0, sha256, rows_read=len(frame), reader="parquet")

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster with its nodes."""
        return cluster_from(self.manifests, f"{self!r}")

    @cached_property
    def pool(self) -> Cluster:
        """The cluster without nodes, with a capacity that is the sum of nominal quotas."""
        return cluster_from(_without_nodes(self.manifests), f"{self!r} without nodes")

    def write(self, folder: str | Path) -> Path:
        """Writes the trace and the manifests, with and without nodes, and returns the path of the trace.

        Raises:
            OSError: the folder cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _TRACE).write_bytes(self._file)
        for name, manifests in ((_ON_NODES, self.manifests), (_POOL, _without_nodes(self.manifests))):
            (folder / name).write_text(dump_yaml(manifests), encoding="utf-8")
        return folder / _TRACE

    def command(self, plugin: str, **changed: Any) -> str:
        """Returns the command line that replays the world in the folder of `write`.

        Args:
            plugin: the policy's name.
            changed: other values of `on_preemption`, `grace_period` or `until` than the world's.
        """
        settings = self._settings(changed)
        words = ["harness", "replay", _TRACE, "--cluster", _ON_NODES if self.uses_nodes(plugin) else _POOL]
        words += ["--plugin", plugin, "--on-preemption", settings["on_preemption"]]
        words += ["--grace-period", exact_duration(settings["grace_period"])]
        words += ["--until", exact_duration(settings["until"])] if settings["until"] is not None else []
        for name, value in self.options.get(plugin, {}).items():
            words += ["--set", f"{name}={value}"]
        return " ".join(quote(word) for word in words)

    def replay(
        self,
        plugin: str | PolicyFactory,
        folder: str | Path,
        *,
        options: Mapping[str, Any] | None = None,
        plugins: Plugins | None = None,
        **changed: Any,
    ) -> Run:
        """Replay the world, without changes of the cluster if the policy can't handle them.

        Args:
            plugin: the name of a registered policy, or a policy class.
            folder: the folder for runs.
            options: the policy's options. The default is the options of the world.
            plugins: the result of `harness.plugins.load()`. By default, harness loads the plugins.
            changed: other values of `on_preemption`, `grace_period` or `until` than the world's.

        Raises:
            HarnessError: as for `harness.replay`.
        """
        request = Request(
            self.trace,
            plugin=plugin,
            cluster=self.cluster if self.uses_nodes(plugin) else self.pool,
            options=self.options.get(str(plugin), {}) if options is None else options,
            output=folder,
            ignore_events=plugin not in PLUGINS,
            **self._settings(changed),
        )
        return request.run(plugins=plugins)

    def faults(self, run: Run, *, rules: Iterable[str] | None = None) -> list[Broken]:
        """Returns the violations in a run of this world; see `harness.testing.checks.check_run`.

        Args:
            run: the result of `replay`.
            rules: rules that its policy must follow in addition to the rules for every policy.
        """
        cluster = self.cluster if run.info["cluster"]["nodes"] else self.pool
        return check_run(run, cluster, self.trace, rules=rules)

    def _settings(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        own = {"on_preemption": self.on_preemption, "grace_period": self.grace_period, "until": self.until}
        return own | dict(changed)


def random_world(
    seed: int,
    *,
    jobs: int | None = None,
    node_events: bool = False,
    changes: bool = True,
    devices: bool = False,
) -> World:
    """Generate a random world, where equal seeds give equal worlds on all machines and Python versions.

    Every job fits the whole cluster, although it might not fit any single queue or node. Therefore, every
    policy in `PLUGINS` can replay every world.

    Args:
        seed: any whole number.
        jobs: the number of jobs. The default is a random number from 4 to 36.
        node_events: whether nodes appear, disappear and change. The world is otherwise the same.
        changes: whether quotas and other objects change in a third of the worlds.
        devices: whether GPUs are devices that pods share. The world is otherwise the same.
    """
    chance = Chance(seed, "world")
    resources = ["cpu", *(name for name, share in (("memory", 50), (GPU, 40)) if chance.percent(share))]
    queues = [f"q{number}" for number in range(chance.between(1, 5))]
    flavors = [f"f{number}" for number in range(chance.choice((1, 1, 1, 2, 3)))]
    kin = Kin(resources, queues, flavors, *(chance.percent(share) for share in (40, 30, 30)))
    trace = rows(Chance(seed, "jobs"), kin, jobs or chance.between(4, 36))
    huge = "memory" in resources and chance.percent(40)
    units = {
        "cpu": 1000,
        "memory": largest_unit(trace, "memory") if huge else 2**30,
        GPU: 1000 if devices else 1,
    }
    units = {resource: units[resource] for resource in resources}
    manifests, flat = _manifests(seed, units, flavors, queues)
    pooled = chance.percent(50)
    options = _options(Chance(seed, "options"), flat=flat, pooled=pooled, trace=trace)
    grouping = Chance(seed, "groups")
    groups = pod_groups(grouping, trace) if grouping.percent(25) else {}
    manifests += [pod_group(name, least) for name, least in groups.items()]
    changing = Chance(seed, "events")
    manifests += events(changing, manifests) if changing.percent(33) and changes else []
    if node_events:
        there = [each for each in manifests if each["kind"] == "Node"]
        manifests += changes_of(Chance(seed, "node events"), there, units)
    frame = frame_of(trace, units)
    if devices:
        frame, manifests = with_devices(Chance(seed, "devices"), frame, manifests)
    return World(
        seed,
        frame,
        manifests,
        pooled=pooled,
        on_preemption=chance.choice(_LOSSES),
        grace_period=chance.choice((0, 30 * SECOND)),
        until=chance.between(0, 150) * SECOND if chance.percent(15) else None,
        options=options,
    )


def _manifests(
    seed: int, units: Mapping[str, int], flavors: Sequence[str], queues: Sequence[str]
) -> tuple[list[Manifest], bool]:
    chance = Chance(seed, "cluster")
    found = nodes(chance, units, flavors)
    on_nodes = cluster_from(found, "nodes").capacity
    total = {resource: min(INT64_MAX, on_nodes.get(resource, 0)) for resource in units}
    found += kueue(Chance(seed, "kueue"), units, flavors, queues)
    flat = chance.percent(20)
    return [*found, *elastic(Chance(seed, "elastic"), units, total, queues, flat=flat)], flat


def _options(chance: Chance, *, flat: bool, pooled: bool, trace: Sequence[Row]) -> dict[str, dict[str, str]]:
    latency = {"evictionLatency": chance.choice(("0s", "1s", "1s", "7s"))}
    gang = chance.choice(("pods", "all-or-nothing"))
    queue = latency | {"featureGates": chance.choice(_GATES)}
    semantics = chance.choice(("capacity-scheduling", "koordinator", *(["ack"] * 2 * (not flat))))
    elastic_quota = latency | {"semantics": semantics, "revokeAfter": chance.choice(("0s", "5s", "2m"))}
    if chance.percent(50):
        elastic_quota["gang"] = gang
    if semantics == "ack" and any(row["labels"] for row in trace):
        elastic_quota["protectedLabel"] = PROTECTED
    orders = {"order": chance.choice(("priority", "fifo")), "blocking": chance.choice(("strict", "skip"))}
    return {
        "none": orders if pooled else {"gang": gang},
        "default-preemption": latency | {"gang": gang},
        "kueue-classic": queue,
        "fairsharing": queue | {"preemptionStrategies": chance.choice(_STRATEGIES)},
        "elasticquota": elastic_quota,
        "auto": dict(elastic_quota),
    }


def _settings(options: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _without_nodes(manifests: Sequence[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] != "Node"]


def with_devices(
    chance: Chance, frame: pl.DataFrame, manifests: Sequence[Manifest]
) -> tuple[pl.DataFrame, list[Manifest]]:
    """Returns a copy of a world's trace and manifests, in which GPUs are devices that pods can share.

    The copy counts GPUs in thousandths, and reads the original's quantities as thousandths. Half of the pods
    that request one whole GPU request a share of a GPU instead.
    """
    found: list[Manifest] = json.loads(json.dumps(manifests).replace(f'"{GPU}"', f'"{MILLI_GPU}"'))
    for each in found:
        has = each.get("status", {}).get("allocatable", {}).get(MILLI_GPU) if each["kind"] == "Node" else None
        if has is not None:
            each["metadata"].setdefault("labels", {})[GPU_COUNT] = str(int(parse_quantity(has)) // WHOLE)
    column = f"{REQUEST}{GPU}"
    if column not in frame.columns:
        return frame, found
    asked = [
        chance.choice(_SHARES) if amount == WHOLE and chance.percent(50) else amount
        for amount in frame[column].to_list()
    ]
    return frame.with_columns(pl.Series(column, asked)).rename({column: f"{REQUEST}{MILLI_GPU}"}), found
