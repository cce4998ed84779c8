"""Conditions that fail a comparison in CI if they hold, such as `wait.first_start.p95{queue=prod} > +5%`.

If there are twins, the 95 % interval decides. The condition holds if the whole interval is beyond the bound,
and it is undecided if the bound lies within the interval. Point values are judged only on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from sys import float_info
from typing import Any, NamedTuple

from harness.analysis.comparison.changes import PRACTICAL, Row
from harness.analysis.comparison.comparison import Comparison
from harness.analysis.comparison.figures import PARTS, between, change_between, changed, name_of, shown
from harness.base.errors import InputError, OptionError, RunError
from harness.base.markdown import plain
from harness.base.options import did_you_mean, nearest, there_is
from harness.base.text import aligned, columns, counted, folded, printable
from harness.base.units import SECOND, parse_duration, plain_number
from harness.plugins.measurement import Measurement
from harness.plugins.scopes import ALL, KINDS

NEEDS_TWINS = "conditions need twins: one replay of each run cannot separate a change from luck"
"""The error message if there are no twins and the user does not request point values."""

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_CONDITION = re.compile(
    r"\s*(?P<metric>[^\s{}<>]+)\s*(?:\{(?P<where>[^{}]*)\})?\s*(?P<how>[<>]=?)\s*(?P<bound>\S+)\s*"
)
_ALLOWED = (
    "write METRIC{SCOPE} > BOUND, with >, >=, < or <=: 'wait.first_start.p95{queue=prod} > +5%' or "
    "'disruption.lost{resource=cpu} > 100'. A bound with a sign is a change against the baseline (+5%, -10%, "
    "+10m, -3). A bound without a sign is a value (such as 4h or 100, or 80% for a share)"
)
_RESOURCE = "resource"
_KEYS = (*KINDS, _RESOURCE)
_PER_CENT = re.compile(r"[0-9]+(?:\.[0-9]+)?%")
_LEAST = float_info.min
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

_WORDS = {True: "fails", False: "passes", None: "undecided"}
"""The word for a check, depending on whether its condition holds.

A check passes if its condition does not hold.
"""


class Check(NamedTuple):
    """A condition and a value for which it was checked.

    Attributes:
        condition: the condition as the user wrote it.
        measured: the metric, scope and resource. Its value is the baseline's value.
        run: the name of the run.
        baseline: the baseline's value; None if there is only one run.
        holds: True if the condition holds, so that the check fails. None if the interval over twins does not
            decide it.
        text: a sentence with the value and what it is compared with.
    """

    condition: str
    measured: Measurement
    run: str
    value: float
    baseline: float | None
    holds: bool | None
    text: str

    def to_json(self) -> dict[str, Any]:
        """Returns the check as plain values, for JSON."""
        condition, measured, *_ = self
        about = {name: getattr(measured, name) for name in ("metric", "scope", "resource", "unit")}
        rest = {
            name: value for name, value in self._asdict().items() if name not in ("condition", "measured")
        }
        return {"condition": condition, **about, **rest}


@dataclass(frozen=True)
class Condition:
    """A condition on metrics, as the user wrote it.

    Attributes:
        text: the whole condition.
        metric: a name or pattern.
        scope: a scope such as `all` or `queue=prod`.
        resource: the resource to check; None for all resources.
        how: `>`, `>=`, `<` or `<=`.
        sign: 1 or -1 if the bound is a change, 0 if the bound is a value.
        bound: the bound as written, without its sign.
    """

    text: str
    metric: str
    scope: str
    resource: str | None
    how: str
    sign: int
    bound: str

    def checks(self, comparison: Comparison, *, values: bool) -> Iterator[Check]:
        """Checks the condition for each run except the baseline, or for a single run.

        The runs must have twins unless `values` is true, which means that point values are judged.

        Raises:
            RunError: no such metric was measured, or a value is missing.
            OptionError: the bound does not fit the metric's unit, or there is no second run to compare with.
        """
        for row in self.rows(comparison):
            for place in range(0 if len(comparison.runs) == 1 else 1, len(comparison.runs)):
                yield self._checked(comparison, row, place, values=values)

    def _checked(self, comparison: Comparison, row: Row, place: int, *, values: bool) -> Check:
        value, base = row.values[place], row.values[0]
        if unknown := comparison.without_run_times(row.measured, place):
            raise RunError(
                f"condition {self.text!r} cannot be decided: {unknown}",
                hint="--unfinished of harness replay sets these run times, or leaves the jobs out",
            )
        if value is None or (self.sign and base is None):
            lacking = 0 if value is not None else place
            what = f"{name_of(row.measured)} has no value in {comparison.names[lacking]}"
            hint = "a metric has no value if its denominator is 0, or if it applies to no job of the run"
            raise RunError(f"condition {self.text!r} cannot be decided: {what}", hint=hint)
        ends = None if values else self._ends(comparison, row, place)
        return Check(
            condition=self.text,
            measured=row.measured,
            run=comparison.names[place],
            value=value,
            baseline=base if place else None,
            holds=self._holds(row, place) if ends is None else self._beyond(row, ends),
            text=self._said(comparison, row, place, ends),
        )

    def rows(self, comparison: Comparison) -> list[Row]:
        """Returns the measured metrics that match the condition and whose units fit its bound.

        If several match, those without a value in any run are left out.

        Raises:
            RunError: no such metric was measured.
            OptionError: the bound does not fit the metric's unit, or there is no second run to compare with.
        """
        if self.sign and len(comparison.runs) == 1:
            raise OptionError(
                f"condition {self.text!r}: it judges a change, but there is no second run",
                hint="give two runs, or a bound without a sign",
            )
        try:
            rows = comparison.rows(self.metric, scope=self.scope)
        except RunError as error:
            raise RunError(f"condition {self.text!r}: {error.message}", hint=error.hint) from error
        found = [row for row in rows if self.resource in (None, row.measured.resource)]
        if not found:
            known = {row.measured.resource for row in rows if row.measured.resource}
            hint = did_you_mean(self.resource or "", known) if known else f"{self.metric} has no resource"
            raise RunError(
                f"condition {self.text!r}: {self.metric} was not measured for resource {self.resource!r}",
                hint=hint,
            )
        found = [row for row in found if any(value is not None for value in row.values)] or found
        for row in found:
            self._limit(row.measured.unit)
        return found

    def _holds(self, row: Row, place: int) -> bool:
        value, base, limit = row.values[place], row.values[0], self._limit(row.measured.unit)
        assert value is not None
        if not self.sign:
            return _COMPARED[self.how](value, limit)
        assert base is not None
        change = row.changes[place - 1]
        difference, relative = change.difference, change.relative
        if difference is None:  # At least one of the two values is not finite.
            difference = value - base
            relative = difference / abs(base) if base else None
        if self.bound.endswith("%"):
            difference = relative if relative is not None else difference and difference * float("inf")
        return _COMPARED[self.how](difference, self.sign * limit)

    def _beyond(self, row: Row, ends: tuple[float, float]) -> bool | None:
        """Returns True if the whole interval meets the condition, False if none of it does, or else None."""
        limit = self._limit(row.measured.unit)
        met = {_COMPARED[self.how](end, self.sign * limit if self.sign else limit) for end in ends}
        return met.pop() if len(met) == 1 else None

    def _ends(self, comparison: Comparison, row: Row, place: int) -> tuple[float, float]:
        """Returns the ends of the interval with which the bound is compared.

        A bound without a sign is compared with the interval of the mean. A bound with a sign is compared with
        the interval of the change. The change is a fraction of the baseline's value if the bound is a
        percentage. Otherwise, the change is in the metric's unit.
        """
        measured = row.measured
        paired = comparison.paired(measured)
        ends = None
        if paired is not None and self.sign and self.bound.endswith("%"):
            ends = paired.relative(place)
        elif paired is not None:
            found = (paired.difference if self.sign else paired.level)(place)
            ends = None if found is None else (found.low, found.high)
        if ends is None:
            raise RunError(
                f"condition {self.text!r} cannot be decided: "
                f"fewer than two twins have a value of {name_of(measured)}",
                hint="--shake 5 makes five twins; --fail-on-values judges point values",
            )
        return ends

    def excess(self, unit: str, value: float, base: float) -> float:
        """Returns by how much a value exceeds the bound, in the metric's unit; 0 or less for allowed values.

        If the bound has a sign, the change is relative to `base`.

        Raises:
            OptionError: the bound does not fit the metric's unit.
        """
        limit = self._limit(unit)
        if self.sign:
            part = abs(base) if self.bound.endswith("%") else 1.0
            limit = base + self.sign * limit * part
        beyond = value - limit if self.how.startswith("<") else limit - value
        # The operator excludes the bound itself, so a value equal to the bound is not allowed.
        return beyond if beyond or self.how.endswith("=") else _LEAST

    def _said(self, comparison: Comparison, row: Row, place: int, ends: tuple[float, float] | None) -> str:
        unit = row.measured.unit

        def value_in(at: int) -> str:
            told, partly = (
                shown(row.values[at], unit, at_least=row.is_least(at)),
                comparison.lack(row.measured, at).partly,
            )
            return f"{told} in {comparison.names[at]}{partly and f' ({partly})'}"

        sentence = f"{name_of(row.measured)} is {value_in(place)}"
        if ends is not None and not self.sign and ends[0] < ends[1]:
            sentence += f" {between(*ends, unit)}"
        if not place:
            return sentence
        change = row.changes[place - 1]
        was = value_in(0)
        if ends is not None:
            relative = self.bound.endswith("%")
            how = change_between(*ends, unit, relative=relative) if self.sign else ""
            return f"{sentence}, {was}{f' (change {how})' if how else ''}"
        how = changed(change, unit)
        if self.bound.endswith("%") and change.relative and abs(change.relative) < PRACTICAL:
            sign = "+" if change.relative > 0 else ""  # Below 1 %, tables show no change.
            how = f"{sign}{plain_number(100 * change.relative, 3)} %{' relative' if unit in PARTS else ''}"
        return f"{sentence}, {was}{f' ({how})' if how else ''}"

    def _limit(self, unit: str) -> float:
        """Converts the bound to a number: percentages to fractions, and durations to seconds."""
        if _PER_CENT.fullmatch(self.bound) and (self.sign or unit in PARTS):
            return float(self.bound[:-1]) / 100
        if _NUMBER.fullmatch(self.bound):
            return float(self.bound)
        if unit == "s":
            try:
                return parse_duration(self.bound) / SECOND
            except InputError:
                pass
        what = "a duration such as 10m or a number of seconds" if unit == "s" else "a number"
        if unit in PARTS:
            what += " or percentages such as 80%"
        raise OptionError(
            f"condition {self.text!r}: {self.bound!r} is not {what}, which {self.metric} needs", hint=_ALLOWED
        )


def parse_condition(text: str) -> Condition:
    """Parses a condition as a user writes it.

    Raises:
        OptionError: the text is not a condition. The message explains what is allowed.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise OptionError(f"condition {text!r} is not understood", hint=_ALLOWED)
    scope, resource = _where(text, match["where"] or "")
    bound = match["bound"]
    sign = {"+": 1, "-": -1}.get(bound[0], 0)
    bare = bound[1:] if sign else bound
    if not (_PER_CENT.fullmatch(bare) or _NUMBER.fullmatch(bare)):
        try:
            parse_duration(bare)
        except InputError as error:
            raise OptionError(f"condition {text!r}: {bound!r} is not a bound", hint=_ALLOWED) from error
    return Condition(text.strip(), match["metric"], scope, resource, match["how"], sign, bare)


def _where(text: str, where: str) -> tuple[str, str | None]:
    found: dict[str, str] = {}
    for part in where.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not part.strip():
            continue
        if key not in _KEYS:
            close = nearest(key, _KEYS)
            meant = f"did you mean '{close}={value}'? " if close is not None else ""
            raise OptionError(f"condition {text!r}: there is no scope {key!r}", hint=meant + there_is(_KEYS))
        if (key == ALL and equals) or (key != ALL and not value):
            raise OptionError(f"condition {text!r}: {part.strip()!r} is not KEY=VALUE", hint=_ALLOWED)
        if key in found:
            raise OptionError(
                f"condition {text!r} names {key!r} twice", hint="write one condition for each value"
            )
        found[key] = value
    resource = found.pop(_RESOURCE, None)
    if len(found) > 1:
        raise OptionError(
            f"condition {text!r} names two scopes, {' and '.join(found)}",
            hint="metrics have one scope, such as {queue=prod} or {queue=prod,resource=cpu}",
        )
    scope = next((f"{key}={value}" if value else key for key, value in found.items()), ALL)
    return scope, resource


def checks_text(
    comparison: Comparison, checks: Sequence[Check], *, values: bool, width: int | None = None
) -> str:
    """Formats all checks for a terminal, including the checks that pass.

    The argument `values` says whether point values were judged. If the table would be wider than the
    terminal, the text contains a sentence for each check instead.
    """
    summary = printable(_summary(comparison, checks, values=values))
    rows = [[check.condition, _WORDS[check.holds], check.text] for check in checks]
    table = aligned([["check", "result", "found"], *rows], left=(0, 1, 2))
    if width is None or all(columns(line) <= width for line in (summary, *table.split("\n"))):
        return f"{summary}\n{table}"
    sentences = [printable(f"{result}: {condition}: {found}") for condition, result, found in rows]
    return "\n".join(folded([summary, *sentences], width))


def checks_markdown(comparison: Comparison, checks: Sequence[Check], *, values: bool) -> str:
    """Returns the checks as Markdown for a pull request."""
    lines = [f"- {_WORDS[check.holds]}: {plain(f'{check.condition}: {check.text}')}" for check in checks]
    return "\n".join([plain(_summary(comparison, checks, values=values)), "", *lines])


def _summary(comparison: Comparison, checks: Sequence[Check], *, values: bool) -> str:
    failed, undecided = (sum(check.holds is each for check in checks) for each in (True, None))
    runs = len(comparison.runs) - 1
    of = f"every run but the baseline {comparison.names[0]}" if runs else comparison.names[0]
    left = f", {undecided:,} undecided" if undecided else ""
    how = "point values" if values else "95 % intervals over twins"
    fails = f"{failed or 'none'} fail{'s' if failed <= 1 else ''}"
    return f"{counted(len(checks), 'check')} of {of}, by {how}: {fails}{left}"
