"""Records the origin of an experiment: its inputs with checksums, versions, and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from harness.base.build import versions
from harness.base.errors import HarnessError
from harness.cluster.model import Cluster
from harness.runs.identity import looked_at_once
from harness.runs.plan import Plan
from harness.runs.tenants import quotas
from harness.studies.experiments.evaluation import Item
from harness.studies.experiments.requests import Bench
from harness.studies.experiments.specification import (
    CLUSTER,
    OWN,
    PATCH,
    PLUGIN,
    SEED,
    TRACE,
    Arm,
    Factor,
    Point,
    Seeds,
    Spec,
)
from harness.trace.job_rows import count_jobs
from harness.trace.trace import Trace


def provenance(bench: Bench, items: Iterable[Item]) -> dict[str, Any]:
    """Returns all data that are needed to repeat an experiment, as plain values.

    The entries `traces`, `clusters` and `plugins` have the same form as in `run.json`. Each combination of a
    trace, a cluster, a patch and a plugin is planned once, with the values of its first item. If that item
    can't be planned, the combination is left out, because the item fails anyway.
    """
    found: dict[str, dict[Any, Any]] = {"clusters": {}, "plugins": {}, "assumed": {}, "warnings": {}}
    code = None
    with looked_at_once({}):
        for point in _first_of(items):
            try:
                plan, cluster = bench.plan(point, bench.request(point)), bench.cluster(_plain(point))
                assumed, warnings = plan.assumed, plan.warnings
            except HarnessError:
                continue
            code = plan.code[0].sha256
            found["clusters"][cluster.digest, cluster.source] = _cluster(plan, cluster)
            found["plugins"][plan.policy.name] = _policy(plan)
            found["assumed"] |= dict.fromkeys(assumed)
            found["warnings"] |= dict.fromkeys(warnings)
    return {
        "specification": fields_of(bench.spec),
        "source": bench.spec.source,
        "harness": {"versions": versions(), "code": code},
        "traces": list(map(_trace, bench.inputs.traces.values())),
        "clusters": list(found["clusters"].values()),
        "plugins": list(found["plugins"].values()),
        "assumed": list(found["assumed"]),
        "warnings": list(found["warnings"]),
    }


def _first_of(items: Iterable[Item]) -> Iterable[Point]:
    found: dict[tuple[Any, ...], Point] = {}
    for item in items:
        found.setdefault(_inputs(item.point), item.point)
    return found.values()


def _inputs(point: Point) -> tuple[Any, ...]:
    return tuple(point.get(name) for name in (TRACE, CLUSTER, PATCH, PLUGIN))


def _plain(point: Point) -> Point:
    """Returns a point without its knobs, its varying settings, and the drawn weeks."""
    return {name: value for name, value in point.items() if name in OWN and name != SEED}


def _trace(trace: Trace) -> Mapping[str, Any]:
    return {
        "name": trace.path.name,
        "sha256": trace.sha256,
        "jobs": count_jobs(trace.frame),
        "left_out": dict(trace.left_out),
        "notes": list(trace.notes),
        "metadata": dict(trace.metadata),
    }


def _cluster(plan: Plan, cluster: Cluster) -> dict[str, Any]:
    return {
        "source": cluster.source,
        "sha256": cluster.digest,
        "nodes": len(cluster.nodes),
        "capacity": dict(cluster.capacity),
        "queues": list(quotas(cluster, by_elastic_quotas=plan.by_elastic_quotas)),
        "assumed": list(cluster.assumed),
    }


def _policy(plan: Plan) -> dict[str, Any]:
    policy = plan.policy
    return {
        "name": policy.name,
        "plugin": policy.owner,
        "version": policy.version,
        "code": plan.code[1].sha256,
    }


def fields_of(spec: Spec) -> dict[str, Any]:
    """Returns the fields from which `spec_of` makes an equal experiment, with paths relative to its file."""
    single = list(takewhile(lambda group: len(group) == 1, spec.groups))
    patches = {label: path for label, path in spec.patches.items() if path is not None}
    found = {
        "experiment": spec.name,
        "traces": _paths(spec.traces, spec.folder),
        "clusters": _paths({label: path for label, path in spec.clusters.items() if path}, spec.folder),
        "patches": _paths(patches, spec.folder),
        "plugins": [_plugin(arm) for arm in spec.arms],
        "settings": dict(spec.settings),
        "vary": {factor.name: list(factor.values) for (factor,) in single},
        "zip": [_factors(group) for group in spec.groups[len(single) :]],
        "exclude": [{name: list(values) for name, values in rule.items()} for rule in spec.exclude],
        "random": "" if spec.random is None else f"{spec.random.count}@{spec.random.seed}",
        "seeds": {} if spec.seeds is None else _seeds(spec.seeds),
        "keep": spec.keep,
        "metrics": list(spec.metrics),
    }
    return {name: value for name, value in found.items() if value}


def _paths(files: Mapping[str, Path | None], folder: Path) -> dict[str, str]:
    return {
        label: ",".join(_relative(Path(part), folder) for part in str(path).split(","))
        for label, path in files.items()
    }


def _relative(path: Path, folder: Path) -> str:
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def _plugin(arm: Arm) -> str | dict[str, Any]:
    name = arm.plugin if arm.label == arm.plugin else f"{arm.plugin}@{arm.label}"
    return {name: dict(arm.options)} if arm.options else name


def _factors(group: Sequence[Factor]) -> dict[str, Any]:
    return {factor.name: list(factor.values) for factor in group}


def _seeds(seeds: Seeds) -> dict[str, Any]:
    return {"count": seeds.count, "first": seeds.first, seeds.of: seeds.by}
