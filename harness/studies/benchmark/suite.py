"""Defines the tasks of a benchmark, which are fixed by a version and the checksums of their files.

The traces are public, so a judge can also draw unseen weeks from them. The judge's seed determines which
blocks of the record are drawn, and the speed of arrivals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, InputError, OptionError, SpecError
from harness.base.frozen import Frozen
from harness.base.names import checked_label
from harness.base.options import did_you_mean
from harness.base.units import exact_number
from harness.cluster.derive import find_cluster
from harness.cluster.yaml.documents import read_specification
from harness.cluster.yaml.fields import Fields
from harness.cluster.yaml.scalars import settled
from harness.studies.experiments.specification import SHAKE, Arm, ItemKeep, Seeds, Spec
from harness.trace.bundled import BUNDLED, bundled_path
from harness.trace.generate.uniform import key_of

FOLDER = Path(__file__).parent / "suites"
"""The folder of the suites that are part of harness."""

NEWEST = "sched-1.0"
"""The default suite."""

MOST_TASKS = 12
LARGEST_SEED = 1_000_000

_PER_SEED = 1_000
_FACTORS = ("9/10", "1", "11/10")
"""The factors by which a seed may scale arrivals, in addition to the task's own factor."""

_HINT = "docs/benchmark.md describes every field"


@dataclass(frozen=True)
class Task:
    """One task of a suite.

    Attributes:
        about: a one-line description of the task.
        trace: the file of the trace. The file of its cluster is next to it.
        patch: the file of a patch for the cluster, which may include changes over time; None if there is no
            patch.
        sums: the expected checksum of each file.
        resource: the resource that the objectives measure, such as `nvidia.com/gpu`.
        settings: settings of `harness replay`, by option name.
        built_in: the policies that define the scale of scores.
        twins: the number of twins to replay, which are versions of the trace with slightly shifted arrivals.
        shake: the jitter of a twin, in the format of `--shake`.
        record: the window from which new weeks are drawn.
        blocks: the length of each drawn block.
        length: how much of the drawn time is replayed.
        objectives: the metrics of each group.
    """

    suite: str
    name: str
    about: str
    trace: Path
    patch: Path | None
    sums: Mapping[Path, str]
    resource: str
    settings: Mapping[str, str]
    built_in: tuple[str, ...]
    twins: int
    shake: str
    record: str
    blocks: str
    length: str
    objectives: Mapping[str, tuple[str, ...]]

    def check(self) -> None:
        """Raises an error unless the files are the original files of the task.

        Raises:
            InputError: a file differs or is missing.
        """
        for path, expected in self.sums.items():
            try:
                found = sha256(path.read_bytes()).hexdigest()
            except OSError as error:
                raise InputError(f"task {self.name}: {path} cannot be read: {error.strerror}") from error
            if found != expected:
                raise InputError(
                    f"task {self.name}: {path} is not the file of {self.suite}: "
                    f"its checksum is {found[:12]}…, but {expected[:12]}… is expected",
                    hint="reinstall harness, or check the file out again",
                )

    def called(self, seed: int | None) -> str:
        """Returns the name of the task's folder, which is different for each seed."""
        return self.name if seed is None else f"{self.name}-seed-{seed}"

    def spec(
        self, arms: Sequence[Arm], seed: int | None = None, *, twins: int | None = None, keep: ItemKeep
    ) -> Spec:
        """Returns the experiment that replays some policies on the task.

        Twins are versions of the trace with slightly shifted arrivals. If `seed` is None, they have the
        task's own weeks. By default, the task defines the number of twins.

        Raises:
            OptionError: the seed or the number of twins is out of range.
        """
        count = self.twins if twins is None else twins
        if not 1 <= count <= _PER_SEED:
            raise OptionError(f"twins: {count} is not a number from 1 to {_PER_SEED:,}")
        settings, seeds = dict(self.settings), Seeds(count, of=SHAKE, by=self.shake)
        if seed is not None:
            if not 1 <= seed <= LARGEST_SEED:
                raise OptionError(f"seed: {seed} is not a number from 1 to {LARGEST_SEED:,}")
            settings |= {"window": self.record, "until": self.length}
            settings["scale-arrivals"] = self._faster(seed)
            seeds = Seeds(count, seed * _PER_SEED + 1, by=self.blocks)
        return Spec(
            name=self.called(seed),
            source=f"task {self.name} of {self.suite}",
            traces=Frozen({self.trace.stem: self.trace}),
            arms=tuple(arms),
            patches=Frozen({"": self.patch}),
            settings=Frozen(settings),
            seeds=seeds,
            keep=keep,
        )

    def _faster(self, seed: int) -> str:
        """Returns the factor of the arrival rate in the weeks of a seed, including the task's own factor."""
        drawn = _FACTORS[key_of("benchmark", self.suite, self.name, seed) % len(_FACTORS)]
        return str(exact_number(self.settings.get("scale-arrivals", "1")) * exact_number(drawn))


@dataclass(frozen=True)
class Suite:
    """A set of named tasks.

    Attributes:
        name: the name with the version, such as `sched-1.0`.
    """

    name: str
    tasks: Mapping[str, Task]

    def task(self, name: str) -> Task:
        """Returns the task with this name.

        Raises:
            OptionError: there is no task with this name.
        """
        if name not in self.tasks:
            raise OptionError(f"{self.name} has no task {name!r}", hint=did_you_mean(name, self.tasks))
        return self.tasks[name]


def load_suite(given: str | Path = NEWEST) -> Suite:
    """Loads a bundled suite by its name, or your own suite from a file.

    Raises:
        SpecError: the file can't be read, or has faults. The error lists each fault with its field.
        OptionError: no suite with this name comes with harness.
    """
    path = Path(given)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{given}.yaml"
        if not path.is_file():
            known = sorted(each.stem for each in FOLDER.glob("*.yaml"))
            raise OptionError(
                f"no suite {str(given)!r} comes with harness", hint=did_you_mean(str(given), known)
            )
    content = settled(read_specification(path, "a suite of tasks", hint=_HINT)[0])
    faults: list[Fault] = []
    fields = Fields(content, "", faults)
    name = fields.string("suite", required=True)
    found = {}
    every = fields.child("every-task")
    common = {key: every.raw(key) for key in every}
    of_tasks = fields.child("tasks")
    unread: list[str] = []
    for each in of_tasks:
        _named(each, f"tasks.{each}", faults)
        own = Fields({**common, **_mapping(of_tasks.raw(each))}, "", faults, each)
        found[each] = _task(name, each, own, path.parent)
        unread += own.unread()
    if not 1 <= len(found) <= MOST_TASKS:
        faults.append(Fault("tasks", f"has {len(found):,} tasks, but a suite has 1 to {MOST_TASKS} tasks"))
    faults += [Fault(name, "is not a known field") for name in (*fields.unread(), *unread)]
    if faults:
        raise SpecError(str(path), faults, hint=_HINT)
    return Suite(name, Frozen(found))


def _task(suite: str, name: str, fields: Fields, folder: Path) -> Task:
    trace = _file(fields, "trace", folder)
    patch = _file(fields, "patch", folder) if "patch" in fields else None
    cluster = find_cluster(trace)
    if cluster is None:
        fields.fault("trace", "has no cluster next to it")
    files = {"trace": trace, "cluster": cluster, "patch": patch}
    given = fields.strings("sha256")
    sums = {path: given.get(called, "") for called, path in files.items() if path is not None}
    redrawn = fields.child("redrawn")
    objectives = fields.child("objectives")
    return Task(
        suite=suite,
        name=name,
        about=fields.string("about", required=True),
        trace=trace,
        patch=patch,
        sums=Frozen(sums),
        resource=fields.string("resource", required=True),
        settings=Frozen(fields.strings("settings")),
        built_in=fields.texts("built-in"),
        twins=fields.integer("twins", 5, least=2, most=_PER_SEED),
        shake=fields.string("shake", required=True),
        record=redrawn.string("window", required=True),
        blocks=redrawn.string("blocks", required=True),
        length=redrawn.string("until", required=True),
        objectives=Frozen({group: objectives.texts(group) for group in objectives}),
    )


def _file(fields: Fields, name: str, folder: Path) -> Path:
    text = fields.string(name, required=True)
    if text in BUNDLED:
        return bundled_path(text)
    if text and not (folder / text).is_file():
        fields.fault(name, f"is neither a bundled trace nor a file: {folder / text}")
    return folder / text


def _named(name: str, where: str, faults: list[Fault]) -> None:
    try:
        checked_label(name)
    except OptionError as error:
        faults.append(Fault(where, error.message))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
