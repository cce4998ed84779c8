"""Compares the answers of plugins with recorded decisions of real components.

A corpus is a file of JSON Lines, which can be gzipped. Each line is a case, and the field `expect` of a case
contains the answer of the real component. A plugin registers a function that answers the same question with a
model of the component.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from harness.base.errors import HarnessError, InputError, told, why
from harness.base.json_text import parse_json
from harness.base.names import RULE, is_path
from harness.base.options import did_you_mean
from harness.base.values import Value, fixed
from harness.plugins import Plugins, load
from harness.plugins.registries import Registration, Spec

Case: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = Mapping[str, Any]
"""The answer of a component, with the same fields as `expect` in the case."""

_ABSENT = "(absent)"
_CHUNK = 32  # cases per task of a process


@fixed()
class ConformanceSpec(Spec):
    """A component that a plugin models and registers with `harness_register_conformance`.

    The name is the component's name in cases.

    Attributes:
        answer: a function that answers a case. If it raises an error, the case counts as different.
        help: a description of the component in one line.
        informative: the names of fields, at any depth, that are reported but not judged.
        fields: the paths in the input of a case that the component knows, such as `given.pods[].pod`. All
            paths below a known path are also known. harness rejects a case with other paths, because an
            answer that ignores some of the input proves nothing. None if the component itself reports unknown
            fields.
        explain: a function that explains an answer in words.
    """

    answer: Callable[[Case], Answer]
    help: str
    informative: Collection[str] = ()
    fields: Collection[str] | None = None
    explain: Callable[[Case], str] | None = None

    def checked(self, about: Registration) -> ConformanceSpec:
        """Returns the specification after a check; see `Spec.checked`."""
        if not is_path(self.name):
            about.refuse(f"a component is one name, or several names separated by /; a name is {RULE}")
        about.texts(help=self.help)
        about.functions(answer=self.answer)
        about.functions_or_none(explain=self.explain)
        reported = frozenset(about.several("informative", self.informative))
        known = None if self.fields is None else frozenset(about.several("fields", self.fields))
        return replace(self, informative=reported, fields=known)


class Difference(NamedTuple):
    """One place where an answer differs from the recorded answer."""

    path: str
    expected: Any
    got: Any


@fixed()
class Verdict(Value):
    """The result of comparing the answer to one case.

    Attributes:
        differences: the judged differences, empty if the answers agree.
        informative: the differences in fields that are only reported.
        error: the reason why the plugin gave no answer, or "".
    """

    id: str
    component: str
    features: tuple[str, ...]
    differences: tuple[Difference, ...] = ()
    informative: tuple[Difference, ...] = ()
    error: str = ""

    @property
    def agrees(self) -> bool:
        """True if the plugin gave the component's answer."""
        return not self.differences and not self.error


@dataclass(slots=True)
class Tally:
    """The number of judged cases of a kind, and how many of them agree."""

    cases: int = 0
    agree: int = 0

    def add(self, *, agrees: bool) -> None:
        """Count a case."""
        self.cases += 1
        self.agree += agrees


@dataclass(slots=True)
class Report:
    """A summary of how many cases agree.

    Attributes:
        total: the tally of all cases.
        components: maps each component to its tally.
        features: maps pairs of a component and a feature tag to their tally.
        informative: maps pairs of a component and a field that is only reported to the number of cases that
            differ in the field.
        differing: the cases that differ, in the order of the corpora.
    """

    total: Tally = field(default_factory=Tally)
    components: dict[str, Tally] = field(default_factory=dict)
    features: dict[tuple[str, str], Tally] = field(default_factory=dict)
    informative: dict[tuple[str, str], int] = field(default_factory=dict)
    differing: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count one case."""
        agrees, component = verdict.agrees, verdict.component
        self.total.add(agrees=agrees)
        self.components.setdefault(component, Tally()).add(agrees=agrees)
        for feature in verdict.features:
            self.features.setdefault((component, feature), Tally()).add(agrees=agrees)
        for name in sorted({difference.path.rpartition(".")[2] for difference in verdict.informative}):
            self.informative[component, name] = self.informative.get((component, name), 0) + 1
        if not agrees:
            self.differing.append(verdict)


# --- corpora ----------------------------------------------------------------------------------------------


def read_cases(
    paths: Iterable[Path],
    *,
    component: str | None = None,
    features: Iterable[str] = (),
    case: str | None = None,
) -> Iterator[Case]:
    """Yields the cases in corpus files, in order.

    Args:
        paths: files of JSON Lines, gzipped or not.
        component: only cases of this component.
        features: only cases with all of these tags.
        case: only the case with this id.

    Raises:
        InputError: a file is missing or can't be read, or a line is not a case. harness looks for missing
            files before it reads any file.
    """
    wanted = set(features)
    for path, zipped in [(path, _is_zipped(path)) for path in paths]:
        for number, line in _lines(path, zipped=zipped):
            if case is not None and case not in line:
                continue
            found = _case(path, number, line)
            if (
                (component is None or found["component"] == component)
                and wanted <= set(found["features"])
                and (case is None or found["id"] == case)
            ):
                yield found


def _is_zipped(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise _unreadable(path, error) from error


def _lines(path: Path, *, zipped: bool) -> Iterator[tuple[int, str]]:
    import gzip  # every replay imports this module, but does not need gzip

    number = 0
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: line {number} is not UTF-8 text") from error
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: cannot be read: {why(error)}", hint="give a file of cases, *.jsonl.gz")


_FIELDS: Mapping[str, type] = {
    "id": str, "component": str, "features": list, "objects": list, "given": dict, "expect": dict,
}  # fmt: skip


def _case(path: Path, number: int, line: str) -> Case:
    try:
        case = parse_json(line)
    except ValueError as error:
        raise InputError(f"{path}: line {number} is not JSON: {error}") from error
    if not isinstance(case, dict):
        raise InputError(f"{path}: line {number} is not a case, because a case is a mapping")
    wrong = [name for name, kind in _FIELDS.items() if not isinstance(case.get(name), kind)]
    if wrong:
        raise InputError(f"{path}: line {number} is not a case: it lacks {', '.join(wrong)}")
    for name, kind, what in (("features", str, "strings"), ("objects", dict, "mappings")):
        if not all(isinstance(item, kind) for item in case[name]):
            raise InputError(f"{path}: line {number} is not a case: its {name} must be {what}")
    found: Case = case
    return found


# --- asking -----------------------------------------------------------------------------------------------


def check(
    cases: Iterable[Case],
    plugins: Plugins,
    *,
    jobs: int = 1,
    block: Sequence[str] = (),
    counters: bool = False,
) -> Report:
    """Let the plugins answer every case, and compare their answers with the recorded answers.

    Args:
        cases: the cases.
        plugins: the plugins that answer.
        jobs: the number of processes. If there are several processes, each of them loads the installed
            plugins again.
        block: the plugins that these processes don't load.
        counters: whether to judge the informative fields too, such as numbers of cycles.

    Raises:
        InputError: no plugin answers for the component of a case.
    """
    report = Report()
    if jobs <= 1:
        for case in cases:
            report.add(judge(case, component_of(case, plugins), counters=counters))
        return report
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_start, initargs=(tuple(block), counters)
    ) as pool:
        asked = iter(_checked(cases, plugins))
        chunks = iter(lambda: list(islice(asked, _CHUNK)), [])
        waiting = [pool.submit(_judge_all, chunk) for chunk in islice(chunks, 4 * jobs)]
        while waiting:
            for verdict in waiting.pop(0).result():
                report.add(verdict)
            waiting += [pool.submit(_judge_all, chunk) for chunk in islice(chunks, 1)]
    return report


def component_of(case: Case, plugins: Plugins) -> ConformanceSpec:
    """Returns the component of a case.

    Raises:
        InputError: no plugin registers the component.
    """
    spec = plugins.conformance.get(case["component"])
    if spec is None:
        raise InputError(
            f"case {case['id']}: no plugin registers component {case['component']!r}",
            hint=did_you_mean(case["component"], plugins.conformance.names()),
        )
    return spec


def judge(case: Case, spec: ConformanceSpec, *, counters: bool = False) -> Verdict:
    """Let the plugin answer one case, and compare its answer with the recorded answer.

    If the plugin raises an error, the case counts as different. With `counters`, the component's informative
    fields are judged too.
    """
    error, found = "", []
    informative = set[str]() if counters else set(spec.informative)
    try:
        _check_fields(case, spec)
        found = list(differences(case["expect"], spec.answer(case)))
    except HarnessError as refusal:
        error = refusal.message
    except MemoryError:
        raise
    except Exception as failure:
        error = told(failure)
    judged = [each for each in found if not _parts(each.path) & informative]
    reported = [each for each in found if _parts(each.path) & informative]
    return Verdict(
        case["id"], case["component"], tuple(case["features"]), tuple(judged), tuple(reported), error
    )


_OF_EVERY_CASE = frozenset((*_FIELDS, "source", "config", "recorded"))


def _check_fields(case: Case, spec: ConformanceSpec) -> None:
    if spec.fields is None:
        return
    unknown = [name for name in case if name not in _OF_EVERY_CASE]
    for name in ("given", "config"):
        unknown += _beyond(case.get(name), name, spec.fields)
    if unknown:
        raise InputError(f"has fields that its component does not know: {', '.join(dict.fromkeys(unknown))}")


def _beyond(value: Any, path: str, known: Collection[str]) -> Iterator[str]:
    """Yields the paths in a value that are neither known nor prefixes of known paths."""
    if path in known:
        return
    inner: list[tuple[str, Any]] = []
    if isinstance(value, Mapping) and any(each.startswith(f"{path}.") for each in known):
        inner = [(f"{path}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list) and any(each.startswith(f"{path}[]") for each in known):
        inner = [(f"{path}[]", each) for each in value]
    elif value:
        yield path
    for deeper, each in inner:
        yield from _beyond(each, deeper, known)


def differences(expected: Any, got: Any, path: str = "") -> Iterator[Difference]:
    """Yields the smallest parts in which two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for name in dict.fromkeys((*expected, *got)):
            inner = f"{path}.{name}" if path else name
            yield from differences(expected.get(name, _ABSENT), got.get(name, _ABSENT), inner)
    elif isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        for number in range(max(len(expected), len(got))):
            pair = [each[number] if number < len(each) else _ABSENT for each in (expected, got)]
            yield from differences(pair[0], pair[1], f"{path}[{number}]")
    elif type(expected) is not type(got) or expected != got:
        yield Difference(path, expected, got)


def _parts(path: str) -> set[str]:
    return {part.partition("[")[0] for part in path.split(".")}


def _checked(cases: Iterable[Case], plugins: Plugins) -> Iterator[Case]:
    for case in cases:
        component_of(case, plugins)
        yield case


_of_process: list[tuple[Plugins, bool]] = []  # plugins and `counters` of a worker process of `check`


def _start(block: Sequence[str], counters: bool) -> None:
    _of_process[:] = [(load(block=block), counters)]


def _judge_all(cases: list[Case]) -> list[Verdict]:
    plugins, counters = _of_process[0]
    return [judge(case, component_of(case, plugins), counters=counters) for case in cases]
