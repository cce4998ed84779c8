"""Random worlds for dumps: those of `harness.testing.worlds`, with dates, and in whole seconds.

An API server tells all times in whole seconds, so that nothing may happen between two of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from harness.base.units import SECOND
from harness.cluster.changes.timed import has_times
from harness.cluster.load import cluster_from
from harness.cluster.model import Cluster
from harness.testing.worlds import random_world
from harness.testing.worlds.chance import Chance
from harness.trace.trace import Trace
from harness.trace.validate import checked

Manifest = dict[str, Any]

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""When every world begins."""
ORIGIN = int(BEGIN.timestamp()) * SECOND
NAMESPACE = "default"
BY_POD = ("default-preemption", "elasticquota", "none")
"""Policies that bind pods one by one; to them each Pod of a dump is a job of its own."""
PLUGINS = ("kueue-classic", "fairsharing", *BY_POD)
"""The policies whose dumps are tried."""
NOWHERE = "nowhere"
"""The queue of a job that arrives when the scheduler restarts, so that a trace begins then."""

_KUEUE = ("ResourceFlavor", "ClusterQueue", "Cohort", "Node")
_ELASTIC = ("ElasticQuotaTree", "ElasticQuota", "Node")
_TOO_MUCH = 10**9


@dataclass(frozen=True)
class DumpWorld:
    """A cluster, a trace, settings, and when the scheduler restarts.

    Attributes:
        seed: what it was made from.
        plugin: who schedules.
        frame: the trace.
        manifests: the cluster without work.
        losses: what an eviction costs, as `--on-preemption` says it.
        options: of the policy, those that are not default.
        at: when the scheduler restarts, microseconds since the origin.
    """

    seed: int
    plugin: str
    frame: pl.DataFrame
    manifests: Sequence[Manifest]
    losses: str
    options: Mapping[str, Any]
    at: int

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster without work."""
        return cluster_from(self.manifests, f"world {self.seed}")

    @property
    def trace(self) -> Trace:
        """All of the trace."""
        return trace_of(self.frame)

    @property
    def rest(self) -> Trace:
        """What is submitted when the scheduler has restarted; the first of it comes at that instant."""
        later = pl.col("submit_time") > BEGIN + timedelta(microseconds=self.at)
        return trace_of(self.frame.filter(later | (pl.col("queue") == NOWHERE)))


def trace_of(frame: pl.DataFrame) -> Trace:
    """A trace with dates."""
    found, faults = checked(frame)
    assert not faults, faults
    buffer = BytesIO()
    frame.write_parquet(buffer)
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    first: Any = found["submit_time"].to_physical().min()
    origin = int(first) // SECOND * SECOND
    return Trace(Path("t"), found, "timestamp", "UTC", origin, sha256, rows_read=len(found), reader="parquet")


def dump_world(seed: int, plugin: str) -> DumpWorld:
    """A world; the same seed and plugin give the same one."""
    chance = Chance(seed, plugin, "dump")
    world = random_world(seed, jobs=chance.between(8, 40))
    by_pod = plugin in BY_POD
    on_nodes = by_pod or chance.percent(50)
    kinds = {"elasticquota": _ELASTIC}.get(plugin, ("Node",) if by_pod else _KUEUE)
    manifests = [
        _at_home(each)
        for each in world.manifests  # a dump has no times
        if each["kind"] in kinds and (on_nodes or each["kind"] != "Node") and not has_times(each)
    ]
    queues = [each["metadata"]["name"] for each in manifests if each["kind"] == "ClusterQueue"]
    manifests += [_local_queue(name) for name in queues]
    unready = not by_pod and chance.percent(50)
    if unready or (not by_pod and chance.percent(40)):
        manifests.append(_configuration(chance, brief=unready))
    namespace = pl.col("queue") if plugin == "elasticquota" else pl.lit(NAMESPACE)
    frame = _whole(world.frame.with_columns(namespace=namespace), chance, by_pod=by_pod, unready=unready)
    last: Any = frame["submit_time"].max()
    at = chance.between(1, int((last - BEGIN).total_seconds()) + 60) * SECOND
    losses = chance.choice(("restart", "restart", "resume", "checkpoint=7s"))
    options = _options(chance, plugin, world.options[plugin])
    return DumpWorld(seed, plugin, _with_nobody(frame, at), manifests, losses, options, at)


def _options(chance: Chance, plugin: str, found: Mapping[str, str]) -> dict[str, Any]:
    """Options that mean something for pods that are jobs of their own."""
    latency = {} if plugin == "none" else {"evictionLatency": chance.choice((SECOND, SECOND, 7 * SECOND))}
    kept = ("featureGates", "preemptionStrategies", "semantics", "revokeAfter", "protectedLabel")
    return latency | {name: found[name] for name in kept if found.get(name)}


def _at_home(manifest: Manifest) -> Manifest:
    """A manifest, of an ElasticQuotaTree with the namespaces of its quotas: they are called like these."""
    if manifest["kind"] != "ElasticQuotaTree":
        return manifest

    def housed(quota: Manifest) -> Manifest:
        children = [housed(each) for each in quota.get("children", ())]
        return {**quota, "children": children} if children else {**quota, "namespaces": [quota["name"]]}

    return {**manifest, "spec": {"root": housed(manifest["spec"]["root"])}}


def _local_queue(name: str) -> Manifest:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterQueue": name},
    }


def _configuration(chance: Chance, *, brief: bool) -> Manifest:
    """Kueue's Configuration: pods have to be ready in a time, which some do not keep if it is brief."""
    strategy: Manifest = {
        "timestamp": chance.choice(("Eviction", "Creation")),
        "backoffBaseSeconds": chance.choice((0, 20, 50)),
        "backoffMaxSeconds": 70,
    }
    if chance.percent(40):
        strategy["backoffLimitCount"] = chance.between(0, 2)
    wait = {
        "timeout": f"{chance.choice((5, 9, 25))}s" if brief else "30m",
        "blockAdmission": chance.percent(25),
        "requeuingStrategy": strategy,
    }
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "waitForPodsReady": wait}


def _whole(frame: pl.DataFrame, chance: Chance, *, by_pod: bool, unready: bool) -> pl.DataFrame:
    """A trace of durations as one of dates: in whole seconds, with names and UIDs that are the same in parts.

    Pods without a Workload do not say which of them are one job, so that each is one.
    """
    jobs = frame["job_id"].unique(maintain_order=True).to_list()
    frame = _with_many_pods(frame, {job for job in jobs if chance.percent(20)})
    slow = {job: chance.choice((0, 0, 2, 8, 30)) for job in jobs} if unready else {}
    second = pl.lit(SECOND)
    submit, duration = (pl.col(name).to_physical() for name in ("submit_time", "duration"))
    found = frame.with_columns(
        job_id=pl.col("namespace") + "/" + pl.col("job_id"),
        submit_time=(pl.lit(ORIGIN) + -(-submit // second) * second).cast(pl.Datetime("us", "UTC")),
        duration=pl.when(duration.is_null())
        .then(None)
        .otherwise((duration // second + 1) * second)
        .cast(pl.Duration("us")),
        uid=pl.col("job_id"),
    )
    if "checkpoint_interval" in found.columns:
        found = found.drop("checkpoint_interval")
    if "gang" in found.columns:
        found = found.drop("gang")
    if by_pod:
        found = _pod_by_pod(found)
    if slow:
        startup = pl.Series([slow[job] * SECOND for job in frame["job_id"]], dtype=pl.Int64)
        found = found.with_columns(startup=startup.cast(pl.Duration("us")))
    return found


def _pod_by_pod(frame: pl.DataFrame) -> pl.DataFrame:
    """Each pod as a job of its own."""
    apart = frame.with_columns(pod=pl.int_ranges(0, pl.col("pods"))).explode("pod")
    one = pl.lit(1).cast(frame.schema["pods"])
    names = {
        name: pl.col(name) + "-" + pl.col("pod_set") + "-" + pl.col("pod").cast(pl.String)
        for name in ("job_id", "uid")
    }
    return apart.with_columns(pods=one, min_pods=one, **names).drop("pod")


def _with_many_pods(frame: pl.DataFrame, jobs: set[str]) -> pl.DataFrame:
    """Some jobs with five times as many pods, each of a fifth of the size; not those with devices."""
    requests = [name for name in frame.columns if name.startswith("request.")]
    devices = [name for name in requests if name not in ("request.cpu", "request.memory")]
    split = pl.col("job_id").is_in(jobs) & pl.all_horizontal(
        pl.lit(value=True), *(pl.col(each) == 0 for each in devices)
    )
    return frame.with_columns(
        *(pl.when(split).then(pl.col(name) // 5).otherwise(pl.col(name)).alias(name) for name in requests),
        *(
            pl.when(split).then(pl.col(name) * 5).otherwise(pl.col(name)).alias(name)
            for name in ("pods", "min_pods")
        ),
    )


def _with_nobody(frame: pl.DataFrame, at: int) -> pl.DataFrame:
    """The trace with one job more that never can start, submitted when the scheduler restarts."""
    row = {
        "job_id": f"{NAMESPACE}/{NOWHERE}",
        "namespace": NAMESPACE,
        "submit_time": BEGIN + timedelta(microseconds=at),
        "duration": timedelta(seconds=1),
        "queue": NOWHERE,
        "uid": NOWHERE,
        "pods": 1,
        **({"pod_set": "p0"} if "pod_set" in frame.columns else {}),
        "request.cpu": _TOO_MUCH,
    }
    one = pl.DataFrame([row]).cast({name: frame.schema[name] for name in ("submit_time", "duration", "pods")})
    return pl.concat([frame, one], how="diagonal_relaxed").sort("submit_time", maintain_order=True)
