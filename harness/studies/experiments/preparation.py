"""Reads the inputs of an experiment, and tries every value before the first replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, FaultyInputError, HarnessError, SpecError
from harness.base.frozen import Frozen
from harness.base.options import did_you_mean
from harness.base.tables import schemas
from harness.base.units import parse_duration
from harness.cluster.changes.event_table import is_table, read_table
from harness.cluster.derive import find_cluster
from harness.cluster.load import load_cluster, read_manifests
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.runs.identity import looked_at_once
from harness.runs.inputs import read_trace
from harness.studies.experiments.evaluation import Item
from harness.studies.experiments.points import meant, points
from harness.studies.experiments.requests import SETTINGS, TENANTS, Bench, Inputs, measuring
from harness.studies.experiments.specification import (
    CLUSTER,
    PATCH,
    PLUGIN,
    SEED,
    SHAKE,
    TRACE,
    WEEKS,
    Factor,
    Point,
    Seeds,
    Spec,
    Value,
)
from harness.trace.shake import Twin
from harness.trace.tenants import Tenants

_SEEDED = ("sample", "priority-share")
"""The calibration steps that have a seed."""

_HINT = "nothing was replayed; docs/experiments.md describes every field"
_TAKEN = ("item", "key", *schemas.METRICS)
"""The names of columns in tables, which no factor may have."""


def prepared(spec: Spec, plugins: Plugins) -> Bench:
    """Reads the inputs of an experiment and tries all its values.

    Every value is tried once, in a replay that is prepared but not started. All other factors have their
    first value in this replay. All traces are tried on all clusters.

    Raises:
        SpecError: an input cannot be read, or a value cannot be used. The error lists each fault with its
            field.
    """
    faults = Faults()
    traces = {
        label: faults.of(f"trace {label}", partial(read_trace, path, plugins))
        for label, path in spec.traces.items()
    }
    clusters = {
        label: faults.of(f"cluster {label}", partial(_cluster, path)) for label, path in spec.clusters.items()
    }
    beside = None in spec.clusters.values()
    own = {
        label: faults.of(f"trace {label}", partial(_cluster, find_cluster(trace.path)))
        for label, trace in traces.items()
        if beside and trace is not None
    }
    patches = {
        label: faults.of(f"patches.{label}", partial(_patch, path)) for label, path in spec.patches.items()
    }
    tenants = {
        text: faults.of(where, partial(_tenants, text, spec.folder)) for where, text in _values(spec, TENANTS)
    }
    for number, arm in enumerate(spec.arms):
        faults.of(f"plugins[{number}]", partial(plugins.policy, arm.plugin))
    for name in spec.settings:
        if name not in SETTINGS:
            faults.add(f"settings.{name}", f"is not a setting of a replay; {did_you_mean(name, SETTINGS)}")
    if spec.seeds is not None:
        _check_seeds(spec, spec.seeds, faults)
    faults.end(spec.source)
    faults.of("metrics", partial(measuring, plugins, spec.metrics))
    faults.end(spec.source)
    bench = Bench(Inputs(spec, plugins, traces, clusters, own, patches, tenants))
    for factor in spec.factors:
        _check_name(bench, factor, faults)
    with looked_at_once({}):
        faults.add_all(_faults_of_points(bench))
    faults.end(spec.source)
    return bench


def items_of(bench: Bench) -> list[Item]:
    """Returns all items of an experiment, numbered from 0.

    Raises:
        SpecError: the exclusions leave no item.
    """
    with looked_at_once({}):
        found = [
            Item(number, bench.key(point), point)
            for number, point in enumerate(points(bench.spec, bench.applies))
        ]
    if not found:
        whole = prod(len(group[0].values) for group in bench.spec.axes)
        raise SpecError(
            bench.spec.source,
            [Fault("exclude", f"leaves out all {whole:,} points of the grid")],
            hint="name more factors in each exclusion: an exclusion leaves out only points that have all of "
            "its values",
        )
    return found


def _faults_of_points(bench: Bench) -> list[Fault]:
    """Returns the faults of an experiment's values.

    Values are first tried in points that are items. If a point fails, its values are also tried separately,
    so that each fault names its field and no fault hides another. Settings without which no point can start,
    such as the `tenants` of the cluster's queues, are part of every separate attempt.
    """
    together = Faults()
    for where, point in (*_starts(bench, alone=False), *_trials(bench, alone=False)):
        together.of(where, partial(_tried, bench, point))
    if not together.found:
        return []
    alone, settings = Faults(), bench.spec.settings
    needed: list[str] = []
    if not _can_start(_with_settings(bench, ())):
        needed = [name for name in settings if _can_start(_with_settings(bench, [name]))]
    bare = _with_settings(bench, needed)
    for where, point in _starts(bare, alone=True):
        alone.of(where, partial(_tried, bare, point))
    before = len(alone.found)
    for name in settings:
        _, point = next(_starts(bare, alone=True))
        alone.of(f"settings.{name}", partial(_tried, _with_settings(bench, [*needed, name]), point))
    fixed = bench if len(alone.found) == before else bare
    for where, point in _trials(fixed, alone=True):
        alone.of(where, partial(_tried, fixed, point))
    return alone.found or together.found


def _can_start(bench: Bench) -> bool:
    faults = Faults()
    where, point = next(_starts(bench, alone=True))
    faults.of(where, partial(_tried, bench, point))
    return not faults.found


def _with_settings(bench: Bench, names: Iterable[str]) -> Bench:
    spec = bench.spec
    settings = Frozen({name: spec.settings[name] for name in names})
    return Bench(replace(bench.inputs, spec=replace(spec, settings=settings)))


def _tried(bench: Bench, point: Point) -> None:
    bench.planned(bench.request(point))


class Faults:
    """The faults of an experiment, without duplicates."""

    def __init__(self) -> None:
        self._found: dict[str, Fault] = {}

    @property
    def found(self) -> list[Fault]:
        """The faults that were found."""
        return list(self._found.values())

    def add_all(self, faults: Sequence[Fault]) -> None:
        """Adds several faults; see `add`."""
        for fault in faults:
            self.add(fault.where, fault.what)

    def add(self, where: str, what: str) -> None:
        """Adds a fault, unless the same fault was already added for another place."""
        self._found.setdefault(what, Fault(where, what))

    def of(self, where: str, attempt: Callable[[], Any]) -> Any:
        """Returns the result of an attempt. If the attempt fails, adds a fault and returns None."""
        try:
            return attempt()
        except HarnessError as error:
            message = error.message
            if isinstance(error, FaultyInputError) and len(error.faults) > 1:
                message = f"{error.source}: {error.faults[0]} (and {len(error.faults) - 1:,} more faults)"
            self.add(where, f"{message}; {error.hint}" if error.hint else message)
            return None

    def end(self, source: str, *, hint: str = _HINT) -> None:
        """Raises an error with all faults, if there are any.

        Raises:
            SpecError: there are faults.
        """
        if self._found:
            raise SpecError(source, self.found, hint=hint)


def _cluster(path: Path | None) -> Cluster | None:
    return None if path is None else load_cluster(path)


def _tenants(text: str, folder: Path) -> Tenants:
    return Tenants.parse(text).read(folder)


def _patch(path: Path | None) -> Sequence[Mapping[str, Any]] | None:
    if path is None:
        return None
    faults: list[Fault] = []
    found: list[Mapping[str, Any]]
    if is_table(path):
        found = [row.cells for row in read_table(path, faults)]
    else:
        found = [document.content for document in read_manifests(path, faults)[0]]
    if faults:
        raise SpecError(str(path), faults)
    return found


def _check_seeds(spec: Spec, seeds: Seeds, faults: Faults) -> None:
    if seeds.of == WEEKS:
        block = faults.of("seeds.weeks", partial(parse_duration, seeds.by))
        if block == 0:
            faults.add("seeds.weeks", "must be longer than 0")
    elif seeds.of == SHAKE:
        faults.of("seeds.shake", partial(Twin.parse, f"1,{seeds.by}"))
    elif seeds.of not in _SEEDED:
        known = [WEEKS, SHAKE, *_SEEDED]
        faults.add(f"seeds.{seeds.of}", f"is not a kind of draw; {did_you_mean(seeds.of, known)}")
    elif "@" in seeds.by:
        faults.add(
            f"seeds.{seeds.of}", f"{seeds.by!r} already has a seed; leave out '@' and the text after it"
        )
    elif seeds.of in spec.settings or any(factor.name == seeds.of for factor in spec.factors):
        faults.add(f"seeds.{seeds.of}", "is also a setting; give it only here")


def _place(spec: Spec, factor: Factor) -> str:
    """Returns the field that sets a factor in a specification; "" for inputs, plugins and seeds."""
    together = [group for group in spec.groups if len(group) > 1]
    for number, group in enumerate(together):
        if factor in group:
            return f"zip[{number}]"
    return "vary" if any(factor in group for group in spec.groups) else ""


def _values(spec: Spec, name: str) -> Iterator[tuple[str, str]]:
    if name in spec.settings:
        yield f"settings.{name}", spec.settings[name]
    for factor in (factor for group in spec.groups for factor in group if factor.name == name):
        for value in factor.values:
            if value is not None:
                yield f"{_place(spec, factor)}.{name}: {value}", str(value)


def _check_name(bench: Bench, factor: Factor, faults: Faults) -> None:
    place = _place(bench.spec, factor)
    if not place:
        return
    faults.of(f"{place}.{factor.name}", partial(bench.check_name, factor.name))
    if factor.name in _TAKEN:
        faults.add(f"{place}.{factor.name}", f"is the name of a table column; write PLUGIN.{factor.name}")
    if factor.name in bench.spec.settings:
        faults.add(f"settings.{factor.name}", "is also a factor; give it in only one place")


def _starts(bench: Bench, *, alone: bool) -> Iterator[tuple[str, Point]]:
    """Yields a name and a point for each trace, cluster and patch. For `alone`, see `_trials`."""
    inputs = [group[0] for group in bench.spec.axes if group[0].name in (TRACE, CLUSTER, PATCH)]
    seeds = bench.spec.seeds
    rest: dict[str, Value] = {PLUGIN: bench.spec.arms[0].label}
    if not alone:
        rest |= {factor.name: factor.values[0] for factor, _ in _varied(bench)}
        rest |= {} if seeds is None else {SEED: seeds.first}
    for choice in product(*(factor.values for factor in inputs)):
        chosen = dict(zip((factor.name for factor in inputs), choice, strict=True))
        where = ", ".join(f"{name} {value}" for name, value in chosen.items())
        yield where or "trace and cluster", meant({**chosen, **rest}, bench.applies)


def _trials(bench: Bench, *, alone: bool) -> Iterator[tuple[str, Point]]:
    """Yields points that together contain every plugin and value, each with the field that it tries.

    Other factors have their first value, as in a point of `_starts`, or none if `alone` is true.
    """
    spec = bench.spec
    _, start = next(_starts(bench, alone=alone))
    for number, arm in enumerate(spec.arms):
        yield f"plugins[{number}] {arm.label}", meant({**start, PLUGIN: arm.label}, bench.applies)
    if alone and spec.seeds is not None:
        yield "seeds", {**start, SEED: spec.seeds.first}
    for factor, labels in _varied(bench):
        tried = not alone and len(labels) == len(spec.arms)  # A starting point already has the first value.
        for value in factor.values[1 if tried else 0 :]:
            point = {**start, PLUGIN: labels[0], factor.name: value}
            yield f"{_place(spec, factor)}.{factor.name}: {value}", meant(point, bench.applies)


def _varied(bench: Bench) -> list[tuple[Factor, list[str]]]:
    labels = [arm.label for arm in bench.spec.arms]
    found = [
        (factor, [label for label in labels if bench.applies(factor.name, {PLUGIN: label})])
        for group in bench.spec.groups
        for factor in group
    ]
    return [(factor, meant) for factor, meant in found if meant]
