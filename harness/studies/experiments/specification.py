"""The specification of an experiment: inputs, fixed settings and factors, before any file is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.base.frozen import Frozen

Value: TypeAlias = str | int | float | bool | None
"""A value of a factor, as it was written; None if the factor has no meaning for an item."""

Point: TypeAlias = Mapping[str, Value]
"""Factor -> value: all that distinguishes an item from the others."""

ItemKeep: TypeAlias = Literal["metrics", "all"]
"""The stored part of an item: only its metrics, or all tables of its run."""

TRACE, CLUSTER, PATCH, PLUGIN, SEED = "trace", "cluster", "patch", "plugin", "seed"
OWN = (TRACE, CLUSTER, PATCH, PLUGIN, SEED)
"""Factors that have fields of their own in a specification; the others are settings, options and knobs."""

MOST_ITEMS = 1_000_000

WEEKS = "weeks"
"""The default draw of seeds: each seed draws new weeks from the record."""

SHAKE = "shake"
"""Each seed is a twin of the trace: the same jobs, with slightly moved arrivals."""


def _nothing() -> Mapping[str, Any]:
    return Frozen()


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of an experiment, which varies.

    Attributes:
        name: a setting of `harness replay`, `[LABEL.]OPTION` of a plugin, a knob's path, or one of `OWN`.
        values: its values, one or more.
    """

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """A plugin under a label.

    Attributes:
        plugin: the registered name.
        label: the plugin's name in its items.
        options: its options in every item.
    """

    plugin: str
    label: str
    options: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Seeds:
    """Repeats of every point that differ only by chance; one seed gives the same draw for every setting.

    Attributes:
        count: the number of seeds.
        first: the first seed; the others follow it.
        of: what is drawn: `weeks` of the record, its twins by `shake`, or a step of the calibration with a
            seed.
        by: the length of a drawn block; or the jitter of twins, such as `arrivals=30s,ties`; or the step
            without its seed, such as `0.2:1000`.
    """

    count: int
    first: int = 1
    of: str = WEEKS
    by: str = "7d"

    @property
    def numbers(self) -> range:
        """The seeds."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A limit to this many points of the grid, drawn by a seed."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Spec:
    """An experiment.

    Attributes:
        name: its name, and that of its folder.
        source: its name in messages: the file, or the command line.
        traces: label -> file.
        clusters: label -> manifests; None for the trace's own.
        patches: label -> a patch over the cluster; None for the cluster without changes.
        arms: the plugins.
        settings: settings of every item, by the names of the options of `harness replay`.
        groups: the factors. Factors of one group vary together, value by value, and groups form a grid.
        exclude: points that are left out: factor -> value; a point is excluded if it has all of them.
        random: the number of points drawn from the grid; None for all.
        seeds: repeats of every point; None for the record alone.
        keep: what is kept of an item.
        metrics: the families of metrics that are measured; all if empty.
        folder: the folder of relative paths in settings, and in their varied values.
    """

    name: str
    source: str
    traces: Mapping[str, Path]
    arms: tuple[Arm, ...]
    clusters: Mapping[str, Path | None] = field(default_factory=lambda: Frozen({"": None}))
    patches: Mapping[str, Path | None] = field(default_factory=lambda: Frozen({"": None}))
    settings: Mapping[str, str] = field(default_factory=_nothing)
    groups: tuple[tuple[Factor, ...], ...] = ()
    exclude: tuple[Mapping[str, tuple[Value, ...]], ...] = ()
    random: Drawn | None = None
    seeds: Seeds | None = None
    keep: ItemKeep = "metrics"
    metrics: tuple[str, ...] = ()
    folder: Path = Path()

    @property
    def axes(self) -> tuple[tuple[Factor, ...], ...]:
        """The groups of the grid: inputs with several values and plugins first, seeds not at all."""
        named = ((TRACE, self.traces), (CLUSTER, self.clusters), (PATCH, self.patches))
        inputs = [(Factor(name, tuple(found)),) for name, found in named if len(found) > 1]
        plugins = (Factor(PLUGIN, tuple(arm.label for arm in self.arms)),)
        return (*inputs, plugins, *self.groups)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors, seeds last."""
        seeds = () if self.seeds is None else (Factor(SEED, tuple(self.seeds.numbers)),)
        return (*(factor for group in self.axes for factor in group), *seeds)
