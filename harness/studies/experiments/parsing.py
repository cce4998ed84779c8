"""Reads specifications of experiments from YAML or the command line, and reports all faults at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from harness.base.errors import Fault, HarnessError, InputError, SpecError
from harness.base.frozen import Frozen
from harness.base.names import as_word, checked_label
from harness.base.options import did_you_mean
from harness.cluster.derive import plain_stem
from harness.cluster.yaml.documents import read_documents, read_specification
from harness.cluster.yaml.fields import Fields, shown
from harness.cluster.yaml.scalars import settled
from harness.studies.experiments.points import size
from harness.studies.experiments.specification import (
    MOST_ITEMS,
    OWN,
    PLUGIN,
    SEED,
    Arm,
    Drawn,
    Factor,
    ItemKeep,
    Seeds,
    Spec,
    Value,
)

_FIELDS = (
    *("experiment", "trace", "traces", "cluster", "clusters", "patches", "plugins", "settings", "vary"),
    *("zip", "exclude", "random", "seeds", "keep", "metrics"),
)
_HINT = "docs/experiments.md describes every field"
_MOST_SEEDS = 1_000_000
_LARGEST_SEED = 2**31 - 1


def load_spec(path: Path) -> Spec:
    """Reads the experiment in a file. Paths are relative to the folder of the file.

    Raises:
        SpecError: the file cannot be read, or has faults. The error lists each fault with its line or field.
    """
    content = read_content(path)
    return spec_of(content, source=str(path), folder=path.parent, name=plain_stem(path))


def read_content(path: Path) -> Any:
    """Reads a file that contains one YAML document.

    Raises:
        SpecError: the file cannot be read, or does not contain exactly one YAML document.
    """
    return settled(read_specification(path, "an experiment", hint=_HINT)[0])


def spec_of(content: Any, *, source: str, folder: Path = Path(), name: str = "experiment") -> Spec:
    """Reads the experiment in a mapping.

    Paths are relative to `folder`. Messages name the specification by its `source`. If the content sets no
    name of the experiment, `name` is used.

    Raises:
        SpecError: the mapping has faults. The error lists each fault with its field.
    """
    faults: list[Fault] = []
    fields = Fields(content, "", faults)
    spec = _Reader(fields, folder, faults).spec(source, name)
    for unread in fields.unread():
        hint = did_you_mean(unread, _FIELDS) if unread in fields else "is it misspelled?"
        faults.append(Fault(unread, f"is not a known field; {hint}"))
    if not faults and (items := size(spec)) > MOST_ITEMS:
        what = f"there are {items:,} items, but there can be at most {MOST_ITEMS:,}"
        faults.append(Fault("vary", f"{what}; random: 1000@7 draws a thousand points of the grid"))
    if faults:
        raise SpecError(source, faults, hint=_HINT)
    return spec


class _Reader:
    def __init__(self, fields: Fields, folder: Path, faults: list[Fault]) -> None:
        self._fields, self._folder, self._faults = fields, folder, faults

    def spec(self, source: str, name: str) -> Spec:
        fields = self._fields
        traces = self._several("trace", "traces", file="trace")
        if fields.raw("trace") is None and fields.raw("traces") is None:
            fields.fault("trace", "is missing: name the trace to replay")
        clusters: Mapping[str, Path | None] = self._several("cluster", "clusters", file="cluster")
        called = fields.string("experiment", name)
        self._try("experiment", lambda: checked_label(called))
        groups = (*self._vary(), *self._zip())
        self._once(groups)
        arms = self._arms()
        seeds = self._seeds()
        spec = Spec(
            name=called,
            source=source,
            traces=traces,
            clusters=clusters or Frozen({"": None}),
            patches=self._patches(),
            arms=arms,
            settings=self._settings(),
            groups=groups,
            random=self._random(),
            seeds=seeds,
            keep=self._keep(),
            metrics=fields.texts("metrics"),
            folder=self._folder,
        )
        return replace(spec, exclude=self._exclude(spec))

    # --- inputs -------------------------------------------------------------------------------------------

    def _several(self, one: str, many: str, *, file: str) -> Mapping[str, Path]:
        """Returns files by label. The field is a text, a list of texts, or a mapping of labels to texts."""
        fields = self._fields
        if one in fields and many in fields:
            fields.fault(many, f"cannot be combined with {one}; give one of the two")
        name = many if many in fields else one
        return self._files(name, fields.raw(name), file)

    def _files(self, name: str, value: Any, file: str) -> Mapping[str, Path]:
        if value is None:
            return Frozen()
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
            value = {label_of(Path(each)): each for each in value} if self._apart(name, value) else {}
        if not isinstance(value, Mapping):
            self._fields.fault(
                name, f"must be a path, a list of paths or a mapping of names to paths of a {file}"
            )
            return Frozen()
        found: dict[str, Path] = {}
        for label, path in value.items():
            if not isinstance(path, str) or not path:
                self._fields.fault(f"{name}.{label}", f"must be a path, not {shown(path)}")
                continue
            self._try(f"{name}.{label}", lambda label=label: checked_label(str(label)))
            found[str(label)] = self._path(path)
        return Frozen(found)

    def _apart(self, name: str, paths: Sequence[str]) -> bool:
        """Returns True if the labels of all files differ, and records a fault otherwise."""
        twice = [
            label for label, count in Counter(label_of(Path(each)) for each in paths).items() if count > 1
        ]
        for label in twice:
            self._fields.fault(
                name, f"two files would have the name {label!r}: write a mapping of names to paths"
            )
        return not twice

    def _path(self, text: str) -> Path:
        return Path(",".join(str(self._folder / part.strip()) for part in text.split(",")))

    def _patches(self) -> Mapping[str, Path | None]:
        """Returns the patches by label, with `base` for the cluster without changes."""
        patches = self._files("patches", self._fields.raw("patches"), "patch")
        if "base" in patches:
            self._fields.fault("patches.base", "is reserved for the cluster without a patch")
        return Frozen({"base": None, **patches} if patches else {"": None})

    def _arms(self) -> tuple[Arm, ...]:
        """Returns the plugins, given as a name, a list of `NAME[@LABEL]`, or maps of a name to options."""
        fields = self._fields
        raw = fields.raw("plugins")
        given = [raw] if isinstance(raw, str) else raw
        if not isinstance(given, list) or not given:
            fields.fault("plugins", "is missing: a list of the plugins to replay, such as [fairsharing]")
            return ()
        arms: list[Arm] = []
        for number, item in enumerate(given):
            place = f"plugins[{number}]"
            options: Any = {}
            if isinstance(item, Mapping) and len(item) == 1:
                ((item, options),) = item.items()
            if not isinstance(item, str) or not isinstance(options, Mapping):
                fields.fault(place, "must be the name of a plugin, or a mapping of one name to its options")
                continue
            plugin, at, label = item.partition("@")
            label = label if at else plugin
            self._try(place, lambda label=label: checked_label(label))
            if any(label == arm.label for arm in arms):
                fields.fault(
                    place, f"two plugins have the name {label!r}: give one another name, as in {plugin}@other"
                )
                continue
            arms.append(Arm(plugin, label, Frozen({str(key): value for key, value in options.items()})))
        return tuple(arms)

    def _settings(self) -> Mapping[str, str]:
        table = self._table("settings", "values")
        for name, value in table.items():
            if not isinstance(value, (str, int, float)) or isinstance(value, bool):
                self._fields.fault(f"settings.{name}", f"must be text or a number, not {shown(value)}")
        return Frozen({str(name): str(value) for name, value in table.items()})

    def _table(self, name: str, of: str) -> Mapping[Any, Any]:
        """Returns a field that is a mapping of names to values; empty if it is absent or faulty."""
        table = self._fields.raw(name)
        if isinstance(table, Mapping):
            return table
        if table is not None:
            self._fields.fault(name, f"must be a mapping of names to {of}, not {shown(table)}")
        return {}

    def _tables(self, name: str, rule: str) -> list[Mapping[Any, Any]]:
        """Returns a field that is one or several mappings; empty if it is absent or faulty."""
        raw = self._fields.raw(name)
        given = [raw] if isinstance(raw, Mapping) else raw
        if isinstance(given, list) and all(isinstance(each, Mapping) and each for each in given):
            return given
        if given is not None:
            self._fields.fault(name, rule)
        return []

    # --- what varies --------------------------------------------------------------------------------------

    def _vary(self) -> tuple[tuple[Factor, ...], ...]:
        table = self._table("vary", "lists of values")
        return tuple((self._factor("vary", name, values),) for name, values in table.items())

    def _zip(self) -> tuple[tuple[Factor, ...], ...]:
        given = self._tables("zip", "must be a list of mappings of names to lists of values")
        groups = []
        for number, group in enumerate(given):
            place = f"zip[{number}]"
            factors = tuple(self._factor(place, name, values) for name, values in group.items())
            lengths = {len(factor.values) for factor in factors}
            if len(lengths) > 1:
                told = ", ".join(f"{factor.name} {len(factor.values)}" for factor in factors)
                self._fields.fault(place, f"its lists must have the same length: {told}")
                continue
            groups.append(factors)
        return tuple(groups)

    def _factor(self, place: str, name: Any, values: Any) -> Factor:
        given = (
            values if isinstance(values, list) else several(values) if isinstance(values, str) else [values]
        )
        where = f"{place}.{name}"
        for value in given:
            if value is not None and not isinstance(value, (str, int, float)):
                self._fields.fault(where, f"{shown(value)} is not a value: give text or numbers")
        plain = [each for each in given if each is None or isinstance(each, (str, int, float))]
        if not given:
            self._fields.fault(where, "has no values")
        elif len({str(each) for each in plain}) < len(plain):
            self._fields.fault(where, "contains a value twice")
        if name in OWN:
            field = {PLUGIN: "plugins", SEED: "seeds", "patch": "patches"}.get(str(name), f"{name}s")
            self._fields.fault(where, f"must not be given here, because the field {field} gives it")
        return Factor(str(name), tuple(plain) or (None,))

    def _once(self, groups: Iterable[Sequence[Factor]]) -> None:
        count = Counter(factor.name for group in groups for factor in group)
        for name in (name for name, times in count.items() if times > 1):
            self._fields.fault("zip", f"{name} varies twice")

    def _exclude(self, spec: Spec) -> tuple[Mapping[str, tuple[Value, ...]], ...]:
        given = self._tables("exclude", "must be a list of mappings from names of factors to values")
        known = {factor.name: factor.values for group in spec.axes for factor in group}
        rules = []
        for number, rule in enumerate(given):
            found: dict[str, tuple[Value, ...]] = {}
            for name, value in rule.items():
                where = f"exclude[{number}].{name}"
                values = tuple(value) if isinstance(value, list) else (value,)
                if name not in known:
                    self._fields.fault(
                        where, f"does not vary in this experiment; {did_you_mean(str(name), known)}"
                    )
                    continue
                for each in values:
                    if each not in known[name]:
                        told = ", ".join(map(str, known[name]))
                        self._fields.fault(where, f"{shown(each)} is not one of its values: {told}")
                found[str(name)] = values
            rules.append(Frozen(found))
        return tuple(rules)

    def _random(self) -> Drawn | None:
        raw = self._fields.raw("random")
        if raw is None:
            return None
        count, at, seed = str(raw).partition("@")
        if not (count.isdecimal() and int(count) and (seed.isdecimal() if at else True)):
            self._fields.fault("random", f"{shown(raw)} is not understood: write COUNT@SEED, such as 200@7")
            return None
        return Drawn(int(count), int(seed or 0))

    def _seeds(self) -> Seeds | None:
        """Returns the seeds. The field is a number, or a mapping with `count`, `first` and a kind of draw."""
        raw = self._fields.raw("seeds")
        if raw is None:
            return None
        if not isinstance(raw, Mapping):
            raw = {"count": raw}
        fields = Fields(raw, "", self._faults, "seeds")
        count = fields.integer("count", 1, required=True, least=1, most=_MOST_SEEDS)
        first = fields.integer("first", 1, least=0, most=_LARGEST_SEED - _MOST_SEEDS)
        ways = [name for name in raw if name not in ("count", "first")]
        if len(ways) > 1:
            fields.fault("", f"needs one kind of draw, not {len(ways)}: {', '.join(map(str, ways))}")
        if not ways:
            return Seeds(count, first)
        how = fields.raw(ways[0])
        # In `sample: 0.5`, for example, the value is a number.
        if isinstance(how, (int, float)) and not isinstance(how, bool):
            return Seeds(count, first, str(ways[0]), str(how))
        return Seeds(count, first, str(ways[0]), fields.string(ways[0], required=True))

    def _keep(self) -> ItemKeep:
        choices: tuple[ItemKeep, ...] = get_args(ItemKeep)
        found = self._fields.choice("keep", choices, "metrics")
        return next(each for each in choices if each == found)

    def _try(self, name: str, check: Any) -> None:
        try:
            check()
        except HarnessError as error:
            told = f"{error.message}; {error.hint}" if error.hint else error.message
            self._fields.fault(name, told)


def more_varied(spec: Spec, vary: Mapping[str, Sequence[Value]]) -> Spec:
    """Returns an experiment in which more factors vary. Existing factors get the new values.

    Raises:
        SpecError: a given factor varies together with another factor, or occurs in an exclusion.
    """
    faults = []
    groups = list(spec.groups)
    for name, values in vary.items():
        places = [at for at, group in enumerate(groups) if any(factor.name == name for factor in group)]
        new = (Factor(name, tuple(values)),)
        if any(len(groups[at]) > 1 for at in places) or any(name in rule for rule in spec.exclude):
            faults.append(
                Fault(f"--vary {name}", "varies together with other factors; change it in the file")
            )
        elif places:
            groups[places[0]] = new
        else:
            groups.append(new)
    if faults:
        raise SpecError(spec.source, faults)
    settings = {name: text for name, text in spec.settings.items() if name not in vary}
    return replace(spec, groups=tuple(groups), settings=Frozen(settings))


def from_texts(vary: Sequence[str]) -> dict[str, list[Value]]:
    """Parses factors in the form `NAME=VALUE,VALUE,...`. Values that look like numbers become numbers.

    Raises:
        InputError: a text does not have this form, or two texts name the same factor.
    """
    found: dict[str, list[Value]] = {}
    for text in vary:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise InputError(
                f"--vary {text!r} is not understood",
                hint="write NAME=VALUE,VALUE, such as scale-arrivals=0.8,1,1.2",
            )
        if name in found:
            raise InputError(f"--vary {name} is given twice", hint="give all of its values in one --vary")
        found[name] = several(values)
    return found


def several(text: str) -> list[Value]:
    """Returns the values in a comma-separated text. Values that look like numbers become numbers."""
    return [_plain(value.strip()) for value in text.split(",")]


def _plain(text: str) -> Value:
    """Parses a text as a YAML value, or returns the text if the value is no text, number or boolean."""
    faults: list[Fault] = []
    documents, _ = read_documents(text, faults)
    value = settled(documents[0].content) if documents and not faults else text
    return value if isinstance(value, (str, int, float)) else text


def label_of(path: Path) -> str:
    """Returns the default label of a file, which is its name without suffixes."""
    stem = plain_stem(path)
    for ending in (".cluster", ".patch"):
        stem = stem.removesuffix(ending)
    return as_word(stem) or "input"
