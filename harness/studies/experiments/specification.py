"""The specification of an experiment, with its inputs, fixed settings and factors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.base.frozen import Frozen

Value: TypeAlias = str | int | float | bool | None
"""A value of a factor, as the user wrote it. None means that the factor does not apply to an item."""

Point: TypeAlias = Mapping[str, Value]
"""Maps each factor to its value. The values distinguish an item from all other items."""

ItemKeep: TypeAlias = Literal["metrics", "all"]
"""Which part of an item is stored: only the metrics, or all tables of the run."""

TRACE, CLUSTER, PATCH, PLUGIN, SEED = "trace", "cluster", "patch", "plugin", "seed"
OWN = (TRACE, CLUSTER, PATCH, PLUGIN, SEED)
"""The factors that have their own fields. All other factors are settings, options or knobs."""

MOST_ITEMS = 1_000_000

WEEKS = "weeks"
"""The default kind of draw, in which each seed draws new weeks from the record."""

SHAKE = "shake"
"""A kind of draw in which each seed gives a twin, which has the same jobs at slightly different times."""


def _nothing() -> Mapping[str, Any]:
    return Frozen()


@dataclass(frozen=True, slots=True)
class Factor:
    """A property that varies in an experiment.

    Attributes:
        name: the name of a setting of `harness replay`, a plugin's option `[LABEL.]OPTION`, the path of a
            knob (a field of the manifests), or one of `OWN`.
        values: the values, at least one.
    """

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """A plugin with a label.

    Attributes:
        plugin: the registered name of the plugin.
        label: the name of the plugin in items.
        options: the options of the plugin in every item.
    """

    plugin: str
    label: str
    options: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds with which each setting is repeated. All settings use the same draw for the same seed.

    Attributes:
        first: the first seed. The other seeds are the numbers that follow.
        of: what is drawn: `weeks` of the trace, `shake` for twins, or the name of a calibration step that has
            a seed. A twin is a version of the trace with slightly shifted arrivals.
        by: the length of a drawn block for `weeks`, the jitter such as `arrivals=30s,ties` for `shake`, or
            the calibration step without its seed, such as `0.2:1000`.
    """

    count: int
    first: int = 1
    of: str = WEEKS
    by: str = "7d"

    @property
    def numbers(self) -> range:
        """All seeds, from `first` on."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The number of grid points to draw at random (at most all of them), and the seed of the draw."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Spec:
    """An experiment.

    Attributes:
        name: the name of the experiment and of its folder.
        source: the experiment's name in messages, which is a file or the command line.
        traces: the trace files by label.
        clusters: the manifests by label. None stands for the trace's own cluster.
        patches: the patches by label. None stands for the cluster without changes.
        arms: the plugins.
        settings: the settings of every item, by the option names of `harness replay`.
        groups: the factors. Factors in the same group vary together, value by value, and the groups form a
            grid.
        exclude: the points that are left out. Each entry maps factors to values, and excludes the points that
            have all of these values.
        random: the number of points to draw from the grid; None for all points.
        seeds: the seeds with which every point is repeated; None to replay each point once, without draws.
        keep: the part of an item that is stored.
        metrics: the families of metrics to measure; if empty, all families.
        folder: the folder to which paths in settings and their values are relative.
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
        """The groups of factors that form the grid, without seeds.

        Inputs with several values come first, then the plugins, and then `groups`.
        """
        named = ((TRACE, self.traces), (CLUSTER, self.clusters), (PATCH, self.patches))
        inputs = [(Factor(name, tuple(found)),) for name, found in named if len(found) > 1]
        plugins = (Factor(PLUGIN, tuple(arm.label for arm in self.arms)),)
        return (*inputs, plugins, *self.groups)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors, with the seeds last."""
        seeds = () if self.seeds is None else (Factor(SEED, tuple(self.seeds.numbers)),)
        return (*(factor for group in self.axes for factor in group), *seeds)
