"""Carries out tunings: searches on some weeks of a trace, and measures the gain on other weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from io import BytesIO
from math import fsum
from pathlib import Path
from typing import Any

import polars as pl

from harness.analysis.comparison.conditions import Condition
from harness.analysis.comparison.figures import name_of
from harness.base.errors import InputError, ReplayError
from harness.base.options import durations
from harness.base.units import SECOND, exact_duration
from harness.cluster.changes.difference_patch import difference_patch
from harness.cluster.changes.knob_values import is_knob, turned
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.runs import executors
from harness.studies.experiments.evaluation import Item, Made, Replays
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import found_as, measured_as
from harness.studies.experiments.preparation import Faults, prepared
from harness.studies.experiments.provenance import provenance
from harness.studies.experiments.requests import SETTINGS, Bench
from harness.studies.experiments.specification import PLUGIN, SEED, Factor, Point, Value
from harness.studies.experiments.store import Folder
from harness.studies.tuning.result import Tuned
from harness.studies.tuning.search import Found, best_of, plain, ready, search
from harness.studies.tuning.specification import Tuning

WINDOW = "window"
_HALVES = 2
_NO_VALUE = "trials cannot be compared with a missing value: choose another metric, or a later 'until'"
_NOT_MEASURED = "objectives and constraints must use metrics that a replay of the present configuration has"
_USUAL: Mapping[str, Value] = {
    "on-preemption": "restart",
    "grace-period": "30s",
    "startup": "0s",
    "scale-arrivals": 1,
    "scale-cluster": 1,
}
"""The values that a replay uses for settings that are not set."""


@dataclass
class Tuner:
    """Carries out a tuning.

    Raises:
        InputError: Optuna, or a package that the sampler needs, is not installed.
        SpecError: an input can't be read, or a value can't be used. The error lists each fault with its
            field.
    """

    tuning: Tuning
    plugins: Plugins
    output: Path
    bench: Bench = field(init=False)
    windows: tuple[str, str] = field(init=False)
    today: Point = field(init=False)

    def __post_init__(self) -> None:
        self._items: dict[str, Item] = {}
        ready(self.tuning.sampler)
        self.bench = prepared(self.tuning.spec, self.plugins)
        self.windows = self._windows()
        self.today = self._today()
        groups = tuple((Factor(name, (value,)),) for name, value in self.today.items() if name != PLUGIN)
        # The present configuration is checked on all windows like any experiment, before the first replay. It
        # names none of the searched files, which were read earlier.
        factor = Factor(WINDOW, (*self.tuning.parts, *self.windows))
        tried = prepared(replace(self.tuning.spec, groups=(*groups, (factor,))), self.plugins)
        self.bench = Bench(replace(tried.inputs, tenants=self.bench.inputs.tenants))

    @property
    def root(self) -> Path:
        """The folder of the experiment."""
        return self.output / self.tuning.spec.name

    def run(self, *, workers: int | None = None, executor: Executor | None = None) -> Tuned:
        """Searches, and compares the best trial with the present configuration on held-out weeks.

        Args:
            workers: the number of processes on this machine. By default, cores, memory and the amount of work
                limit this number. With 1, this process does all the work.
            executor: an executor that carries out the replays instead of processes on this machine.

        Raises:
            ReplayError: the present configuration can't be replayed, or the executor has shut down.
            SpecError: an objective or a constraint was not measured.
            OptionError, RunError: both `workers` and `executor` are given, or a file can't be written.
        """
        seeds = 1 if self.tuning.spec.seeds is None else self.tuning.spec.seeds.count
        replays = Replays(self.bench.inputs, self.root / "runs")
        most = self.tuning.at_once * seeds
        with executors.executor_for(
            replays, most, memory=replays.memory, workers=workers, executor=executor
        ) as (pool, _):
            return self._tuned(pool)

    def _tuned(self, pool: executors.Executor[Item, Made]) -> Tuned:
        self._folder = Folder(self.root)
        first = self._frames([self.today], self.windows[0], pool)[0]
        if first is None:
            (item, *_) = self._items.values()
            raise ReplayError(
                f"the present configuration cannot be replayed: {self._folder.error(item.key)}",
                hint="the present configuration must work before it can be tuned",
            )
        objectives, bounds = self._measured(first)
        self._check_values(first, objectives, bounds)
        base = [_mean(first, each) for each in bounds]
        better = [each.better for each in objectives]

        def found(
            frame: pl.DataFrame | None, *, whole: bool = True, base: Sequence[float | None] = base
        ) -> Found | None:
            if frame is None:
                return None
            values = [_mean(frame, each) for each in objectives]
            excess = [
                None
                if (value := _mean(frame, each)) is None or was is None
                else condition.excess(each.unit, value, was)
                for condition, each, was in zip(self.tuning.constraints, bounds, base, strict=True)
                if whole
            ]
            if None in values or None in excess:
                return None
            return Found(
                [each for each in values if each is not None],
                [each for each in excess if each is not None],
                [_rows(frame, each)["at_least"].any() for each in objectives],
            )

        windows = (*self.tuning.parts, self.windows[0])
        last = len(self.tuning.parts)
        tried = search(
            self.tuning.space,
            lambda points, stage: [
                found(each, whole=stage == last) for each in self._frames(points, windows[stage], pool)
            ],
            better=better,
            first=self.today,
            trials=self.tuning.trials,
            seed=self.tuning.seed,
            at_once=self.tuning.at_once,
            parts=last,
            sampler=self.tuning.sampler,
        )
        winner = best_of(tried, better)
        held_out, items, unmade = None, None, False
        if winner is not None:
            frames = self._frames([self.today, winner.point], self.windows[1], pool)
            was = base if frames[0] is None else [_mean(frames[0], each) for each in bounds]
            today, other = (found(each, base=was) for each in frames)
            held_out = None if today is None or other is None else (today, other)
            unmade = any(each is None for each in frames)
            items = (self._number(self.today), self._number(winner.point))
        patch = [] if winner is None else self._patch(winner.point)
        return Tuned(
            self._kept(),
            self.windows,
            self.tuning.parts,
            self.today,
            objectives,
            tried,
            winner,
            held_out,
            patch,
            items,
            [each.text for each in self.tuning.constraints],
            unmade,
        )

    def _measured(self, first: pl.DataFrame) -> tuple[list[Measurement], list[Measurement]]:
        faults, tuning = Faults(), self.tuning
        given = len(tuning.objectives) == 1
        objectives = [
            faults.of(f"tune.objectives[{number}]", partial(measured_as, first, text, given=given))
            for number, text in enumerate(tuning.objectives)
        ]
        bounds = [
            faults.of(f"tune.constraints[{number}]", partial(_bounded, first, condition))
            for number, condition in enumerate(tuning.constraints)
        ]
        faults.end(tuning.spec.source, hint=_NOT_MEASURED)
        return objectives, bounds

    def _check_values(
        self, first: pl.DataFrame, objectives: Sequence[Measurement], bounds: Sequence[Measurement]
    ) -> None:
        faults = Faults()
        for field_, measured in (("objectives", objectives), ("constraints", bounds)):
            for number, each in enumerate(measured):
                if _mean(first, each) is None:
                    what = f"the present configuration has no value for {name_of(each)} on {self.windows[0]}"
                    faults.add(f"tune.{field_}[{number}]", what)
        faults.end(self.tuning.spec.source, hint=_NO_VALUE)

    # --- the present configuration ------------------------------------------------------------------------

    def _windows(self) -> tuple[str, str]:
        """Returns the search window and the held-out window. By default, they are the halves of the trace."""
        if self.tuning.search:
            return self.tuning.search, self.tuning.held_out
        (trace,) = self.bench.inputs.traces.values()
        times = trace.frame["submit_time"].to_physical()
        last = int(times.max()) - trace.origin  # type: ignore[arg-type]
        half = f"{max(1, last // _HALVES // SECOND)}s"
        return f"..{half}", f"{half}.."

    def _today(self) -> Point:
        faults = Faults()
        space, (arm,) = self.tuning.space, self.tuning.spec.arms
        found: dict[str, Value] = {PLUGIN: arm.label}
        for name in [*(each.name for each in space.ranges), *(each.name for each in space.choices)]:
            found[name] = faults.of(f"tune.space.{name}", partial(self._present, name))
        faults.end(self.tuning.spec.source)
        return found

    def _present(self, name: str) -> Value:
        spec, (arm,) = self.tuning.spec, self.tuning.spec.arms
        if is_knob(name):
            values = set(self.bench.cluster({PLUGIN: arm.label}).knobs(name).values())
            if len(values) > 1:
                raise InputError(
                    f"{name} stands for knobs with {len(values)} different values", hint="name each of them"
                )
            (value,) = values
            if value is None:
                return 1 if name.endswith(".weight") else None
            return plain(Fraction(value))
        self.bench.check_name(name)
        if name in SETTINGS:
            return spec.settings.get(name, _USUAL.get(name))
        option = name.rpartition(".")[2]
        options = self.plugins.policy(arm.plugin).options
        declared = {each.name: each.default for each in options}
        value = arm.options.get(option, declared[option])
        if option not in arm.options and option in durations(options) and isinstance(value, int):
            return exact_duration(value)  # Users write durations, not microseconds.
        return value if value is None or isinstance(value, (str, int, float)) else str(value)

    # --- items -------------------------------------------------------------------------------------------

    def _frames(
        self, points: Sequence[Point], window: str, pool: executors.Executor[Item, Made]
    ) -> list[pl.DataFrame | None]:
        """Returns the metrics of points on a window, with all seeds in one frame; None if an item failed."""
        wanted = [self._of_point(point, window) for point in points]
        missing = {item.key: item for items in wanted for item in items}
        with closing(pool.map(self._folder.missing(missing.values()))) as news:
            for made in news:
                self._folder.keep(made)
        return [self._frame(items) for items in wanted]

    def _of_point(self, point: Point, window: str) -> list[Item]:
        seeds = self.tuning.spec.seeds
        whole = {**point, WINDOW: window}
        points = [whole] if seeds is None else [{**whole, SEED: each} for each in seeds.numbers]
        found = []
        for each in points:
            key = self.bench.key(each)
            found.append(self._items.setdefault(key, Item(len(self._items), key, each)))
        return found

    def _frame(self, items: Sequence[Item]) -> pl.DataFrame | None:
        if self._folder.missing(items):
            return None
        return pl.concat(pl.read_parquet(BytesIO(self._folder.file(item.key).read_bytes())) for item in items)

    def _number(self, point: Point) -> int:
        return self._of_point(point, self.windows[1])[0].number

    def _kept(self) -> Experiment:
        items = list(self._items.values())
        names = [name for name in items[0].point if name not in (PLUGIN, SEED)]
        values = {name: tuple(dict.fromkeys(item.point[name] for item in items)) for name in names}
        groups = tuple((Factor(name, each),) for name, each in values.items())
        origin = provenance(self.bench, items)
        del origin["specification"]  # a search can't be repeated with `harness sweep`
        self._folder.describe(replace(self.tuning.spec, groups=groups), items, origin)
        self._folder.write_table()
        return Experiment.open(self.root)

    def _patch(self, point: Point) -> Sequence[Mapping[str, Any]]:
        cluster = self.bench.cluster({PLUGIN: self.tuning.spec.arms[0].label})
        changed = {
            name: value for name, value in point.items() if is_knob(name) and value != self.today[name]
        }
        return difference_patch(cluster, turned(cluster, changed))


def _bounded(frame: pl.DataFrame, condition: Condition) -> Measurement:
    found = found_as(frame, condition, given=True)
    condition.excess(found.unit, 0.0, 0.0)
    return found


def _mean(frame: pl.DataFrame, measured: Measurement) -> float | None:
    values = _rows(frame, measured)["value"].to_list()
    return None if not values or None in values else fsum(values) / len(values)


def _rows(frame: pl.DataFrame, measured: Measurement) -> pl.DataFrame:
    return frame.filter(metric=measured.metric, scope=measured.scope, resource=measured.resource)
