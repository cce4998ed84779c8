"""Creates twins of a trace.

A twin has the same jobs with small changes of uncertain quantities, such as arrival times.

A replay is chaotic. If a job arrives a second later, it may get another node, which changes the waits of
thousands of later jobs. In a single replay, two policies therefore differ by their decisions and by luck. The
difference that remains over several twins is due to their decisions (Tsafrir, Ouaknine, Feitelson: Reducing
Performance Evaluation Sensitivity and Variability by Input Shaking, MASCOTS 2007).

The changes of a job depend only on the seed, the twin's number and the job's id. They are the same in every
version of Python, for every policy and cluster, and in a sample or window of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import blake2b

import polars as pl

from harness.base.errors import InputError, OptionError
from harness.base.memo import Memo
from harness.base.options import did_you_mean
from harness.base.text import counted
from harness.base.units import LONGEST, SECOND, exact_duration, exact_number, parse_duration
from harness.trace.calibration import Calibration
from harness.trace.generate.uniform import key_of, uniforms
from harness.trace.trace import Trace

JITTER = 30 * SECOND
"""The default for the maximum shift of an arrival, which can be earlier or later."""

MOST_TWINS = 10_000

_MOST_DIGITS = 18
_MOST_NOISE = Fraction(1, 2)
_PARTS = 10**6  # a duration changes in steps of this fraction of itself
_OF_TRACES: Memo[str, pl.Series] = Memo(2)  # maps the digest of a trace to the result of `_numbers`
_FORM = "write N[@SEED], such as 10 or 10@7; these may follow: ,arrivals=30s ,ties ,durations=1% ,priorities"
_OPTIONS = ("arrivals", "ties", "durations", "priorities")


@dataclass(frozen=True, slots=True)
class Shaking:
    """The quantities that twins vary, and by how much.

    Attributes:
        seed: the seed of the draws. Different seeds create different twins.
        arrivals: the maximum shift of a job's arrival in either direction, in microseconds. Shifts are
            uniformly distributed. No job arrives before the trace's origin. If shifted jobs arrive at the
            same time, they keep the trace's order.
        ties: whether jobs with equal times in the trace change their order.
        durations: the maximum relative change of a job's duration. Changes are uniformly distributed.
        priorities: whether `--priority-share` chooses other jobs in each twin.
    """

    seed: int = 0
    arrivals: int = JITTER
    ties: bool = False
    durations: Fraction = Fraction(0)
    priorities: bool = False

    def __str__(self) -> str:
        return ",".join(
            filter(
                None,
                (
                    f"@{self.seed}",
                    f"arrivals={exact_duration(self.arrivals)}",
                    "ties" if self.ties else "",
                    f"durations={_per_cent(self.durations)}" if self.durations else "",
                    "priorities" if self.priorities else "",
                ),
            )
        )


@dataclass(frozen=True, slots=True)
class Twin:
    """One twin of a trace. Its text defines it completely.

    Attributes:
        number: the number of the twin, counted from 1.
    """

    number: int
    shaking: Shaking = Shaking()

    @classmethod
    def parse(cls, text: str) -> Twin:
        """Parse `NUMBER[@SEED][,OPTION...]`, which is the form that `str` returns.

        Raises:
            OptionError: the text has another form.
        """
        return cls(*_parsed(text, "twin"))

    def __str__(self) -> str:
        return f"{self.number}{self.shaking}"

    def of(self, trace: Trace) -> Trace:
        """Returns the twin of a trace. Quantities that do not vary stay the same."""
        shaking, frame = self.shaking, trace.frame
        jobs = _numbers(trace)
        if shaking.ties:
            at, draw = frame["submit_time"].to_physical(), self._drawn("ties", jobs)
            order = pl.DataFrame({"at": at, "draw": draw}).with_row_index("row")
            places = order.sort("at", "draw", "row")["row"]
            frame, jobs = frame[places], jobs[places]
        moved = []
        if shaking.arrivals:
            time = frame["submit_time"]
            shaken = time.to_physical() + self._offsets("arrivals", jobs, shaking.arrivals)
            moved.append(shaken.clip(trace.origin).cast(time.dtype).alias("submit_time"))
        if shaking.durations:
            duration = frame["duration"].to_physical()
            most = int(shaking.durations * _PARTS)
            parts = self._offsets("durations", jobs, most).cast(pl.Int128)
            longer = (duration.cast(pl.Int128) * parts // _PARTS).cast(pl.Int64)
            moved.append((duration + longer).cast(frame["duration"].dtype).alias("duration"))
        return replace(trace, frame=frame.with_columns(moved))

    def calibration(self, calibration: Calibration | None) -> Calibration | None:
        """Returns the calibration for the replay of this twin, in which nodes fail at other random times.

        If priorities vary, `--priority-share` also chooses other jobs.

        Raises:
            OptionError: priorities should vary, but the calibration sets no priorities.
        """
        if calibration is not None and calibration.failures is not None:
            seed = key_of("shake", self.shaking.seed, self.number, "failures")
            calibration = replace(calibration, failures=replace(calibration.failures, seed=seed))
        if not self.shaking.priorities:
            return calibration
        if calibration is None or calibration.priority_share is None:
            raise OptionError(
                "--shake: priorities cannot vary without --priority-share",
                hint="omit 'priorities', or add --priority-share SHARE:PRIORITY",
            )
        seed = key_of("shake", self.shaking.seed, self.number, "priorities")
        return replace(calibration, priority_share=replace(calibration.priority_share, seed=seed))

    def _drawn(self, purpose: str, jobs: pl.Series) -> pl.Series:
        return uniforms(key_of("shake", self.shaking.seed, self.number, purpose), jobs)

    def _offsets(self, purpose: str, jobs: pl.Series, most: int) -> pl.Series:
        return (self._drawn(purpose, jobs) * (2 * most + 1)).floor().cast(pl.Int64) - most


@dataclass(frozen=True, slots=True)
class Shake:
    """Several twins of a trace, in which the same quantities vary."""

    count: int
    shaking: Shaking = Shaking()

    @classmethod
    def parse(cls, text: str | int) -> Shake:
        """Parse `N[@SEED][,OPTION...]`. The options are the quantities that vary in addition to arrivals.

        Raises:
            OptionError: the text has another form, or describes only one twin, which shows no spread.
        """
        count, shaking = _parsed(str(text), "--shake")
        if count < 2:
            raise OptionError(
                f"--shake {text}: a single twin shows no spread; use at least 2 twins", hint=_FORM
            )
        return cls(count, shaking)

    def __str__(self) -> str:
        return f"{self.count}{self.shaking}"

    def told(self) -> str:
        """Describes the number of twins and the quantities that vary."""
        shaking = self.shaking
        moved = [
            f"arrivals ±{exact_duration(shaking.arrivals)}" if shaking.arrivals else "",
            "order of equal times" if shaking.ties else "",
            f"durations ±{_per_cent(shaking.durations)}" if shaking.durations else "",
            "priorities" if shaking.priorities else "",
        ]
        return f"{counted(self.count, 'twin')} ({', '.join(filter(None, moved))}; seed {shaking.seed})"

    @property
    def twins(self) -> list[Twin]:
        """The twins, ordered by their numbers. With a larger `count`, the first twins stay the same."""
        return [Twin(number, self.shaking) for number in range(1, self.count + 1)]


def _parsed(text: str, option: str) -> tuple[int, Shaking]:
    head, *rest = (part.strip() for part in text.split(","))
    number, at, seed = head.partition("@")
    if not _is_number(number) or (at and not _is_number(seed)):
        raise OptionError(f"{option} {text!r} is not understood", hint=_FORM)
    if not 1 <= int(number) <= MOST_TWINS:
        raise OptionError(f"{option} {text!r}: {number} is not a number from 1 to {MOST_TWINS:,}", hint=_FORM)
    given: dict[str, str] = {}
    for part in rest:
        name, equals, value = part.partition("=")
        if name not in _OPTIONS:
            raise OptionError(
                f"{option} {text!r}: {name!r} cannot be varied", hint=did_you_mean(name, _OPTIONS)
            )
        if name in given or bool(equals) != (name in ("arrivals", "durations")):
            raise OptionError(f"{option} {text!r}: {part!r} is not understood", hint=_FORM)
        given[name] = value
    shaking = Shaking(
        int(seed or 0),
        _jitter(given["arrivals"], option, text) if "arrivals" in given else JITTER,
        "ties" in given,
        _noise(given["durations"], option, text) if "durations" in given else Fraction(0),
        "priorities" in given,
    )
    if not (shaking.arrivals or shaking.ties or shaking.durations or shaking.priorities):
        raise OptionError(f"{option} {text!r} varies nothing, so all twins would be equal", hint=_FORM)
    return int(number), shaking


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _jitter(value: str, option: str, text: str) -> int:
    try:
        jitter = parse_duration(value)
    except InputError as error:
        raise OptionError(f"{option} {text!r}: {error.message}", hint=_FORM) from error
    if not 0 <= jitter <= LONGEST:
        raise OptionError(f"{option} {text!r}: arrivals cannot be moved by {value}", hint=_FORM)
    return jitter


def _noise(value: str, option: str, text: str) -> Fraction:
    try:
        noise = exact_number(value.removesuffix("%")) / 100 if value.endswith("%") else Fraction(-1)
    except ValueError:
        noise = Fraction(-1)
    if not 0 <= noise <= _MOST_NOISE or _PARTS % noise.denominator:
        raise OptionError(
            f"{option} {text!r}: {value!r} is not a fraction of a duration",
            hint="write a percentage from 0% to 50%, with at most four decimals",
        )
    return noise


def _per_cent(part: Fraction) -> str:
    return f"{float(100 * part):.6g}%"


def _numbers(trace: Trace) -> pl.Series:
    """Returns a number for each row that depends on the id of its job.

    Other twins of the trace reuse the numbers.
    """
    found = _OF_TRACES.get(trace.digest)
    if found is None:
        names = trace.frame["job_id"].to_list()
        sums = (blake2b(name.encode(), digest_size=8).digest() for name in names)
        found = pl.Series([int.from_bytes(each, "little") for each in sums], dtype=pl.UInt64)
        _OF_TRACES[trace.digest] = found
    return found
