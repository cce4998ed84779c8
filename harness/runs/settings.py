"""The settings of a replay, which determine how jobs arrive, start, lose work and end.

The trace, the cluster and the plugin are not settings.

A new setting needs a line in `Given`, a line in `Settings`, and an entry in `_ALL`. The arguments of
`harness.replay`, the options on the command line, the settings of experiments, and the entries in `run.json`
are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from inspect import Parameter, signature
from numbers import Integral
from typing import Any, TypedDict, TypeVar, cast

from harness.base.arguments import check_type
from harness.base.errors import InputError, OptionError
from harness.base.options import did_you_mean, factor
from harness.base.units import LONGEST, exact_duration, parse_duration
from harness.base.values import Fixed, Value, fixed
from harness.engine.losses import Losses, parse_losses

_F = TypeVar("_F", bound=Callable[..., Any])

EMPTY, DUMP = "empty", "dump"
WORLDS = (EMPTY, DUMP)
"""The two ways in which a replay can begin: without work, or with the work in the manifests."""

DRAW, DROP, LIMIT = "draw", "drop", "limit"


class Given(TypedDict, total=False):
    """The settings of a replay as callers give them. Each of them can be omitted.

    Attributes:
        on_preemption: `restart`, `resume` or `checkpoint=<interval>[,restore=<cost>]`.
        grace_period: how long preempted pods keep their resources, for jobs that don't specify a grace
            period. It is a duration such as `30s`, or microseconds.
        startup: how long pods take to become ready, as a duration or microseconds. The run time of a job
            begins when its pods are ready. Unused if the trace has a column for it.
        until: the last simulated time, as a duration or microseconds. It counts from the trace's origin or,
            in a window of the trace, from the first job.
        scale_arrivals: the factor by which jobs arrive faster. For example, 2 doubles the rate.
        at_start: `dump` starts with the Workloads and Pods of the manifests, `empty` without them. The
            default is `empty` for a trace whose dates precede those in the manifests, else `dump`.
        unfinished: how long unfinished work in the manifests runs. `draw` draws run times from those of ended
            jobs, as forecasts do. `limit` takes the longest allowed run time. `drop` leaves the work out. A
            duration such as `2h` is the run time of each workload or pod.
        seed: the seed of these draws. Each twin, which has slightly shifted arrivals, has its own draws.
        ignore_events: whether to leave out cluster changes that the plugin cannot follow. By default, such
            changes are an error.
    """

    on_preemption: str | Losses
    grace_period: str | int
    startup: str | int
    until: str | int | None
    scale_arrivals: str | float | Fraction
    at_start: str | None
    unfinished: str
    seed: int
    ignore_events: bool


@fixed()
class Settings(Value):
    """The checked settings of a replay, which `Given` describes. All times are in microseconds."""

    on_preemption: Losses
    grace_period: int
    startup: int
    until: int | None
    scale_arrivals: Fraction
    at_start: str | None
    unfinished: str
    seed: int
    ignore_events: bool

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Settings:
        """Returns the settings that a caller gave, and the defaults of all others.

        Raises:
            OptionError: there is no such setting, or a value is out of range or has the wrong type.
        """
        for name in given:
            if name not in SETTINGS:
                raise OptionError(f"a replay has no setting {name!r}", hint=did_you_mean(name, SETTINGS))
        return cls(**{name: each.checked(given.get(name, each.default)) for name, each in SETTINGS.items()})

    def values(self) -> dict[str, Any]:
        """Returns the values of the settings by their names."""
        return {name: getattr(self, name) for name in SETTINGS}

    def texts(self) -> dict[str, Any]:
        """Returns the settings as plain JSON values, from which `checked` makes equal settings."""
        return {name: SETTINGS[name].plain(value) for name, value in self.values().items()}

    def recorded(self) -> Iterator[tuple[str, Any]]:
        """Yields the entries for `run.json` that depend only on the settings."""
        for name, value in self.values().items():
            each = SETTINGS[name]
            if each.recorded == ALWAYS or (each.recorded == CHANGED and each.differs(value)):
                yield each.key, each.plain(value)


ALWAYS, CHANGED, IF_USED = "always", "changed", "if used"
"""When `run.json` contains a setting: always, if it isn't the default, or if the plan of a replay uses it."""


@fixed()
class Setting(Fixed):
    """One setting of a replay.

    Attributes:
        default: the default, as a caller would give it.
        read: checks and converts what a caller gave.
        help: a description for the command line.
        metavar: the placeholder of its value on the command line.
        choices: the allowed texts, or () if other texts are allowed.
        types, wanted: the allowed types, and their description in messages. `types` is ()
            if `read` checks the type.
        plain: converts a value to JSON.
        unit: the suffix of the name in `run.json`.
        recorded: when `run.json` contains the setting.
        kind: the type of its entry in `run.json`, or None if the entry can be missing or null.
    """

    name: str
    default: Any
    read: Callable[[Any], Any]
    help: str
    unit: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    types: tuple[Any, ...] = ()
    wanted: str = ""
    plain: Callable[[Any], Any] = lambda value: value
    recorded: str = CHANGED
    kind: type | None = None

    @property
    def key(self) -> str:
        """The name in `run.json`."""
        return f"{self.name}{self.unit}"

    def checked(self, given: Any) -> Any:
        """Returns the checked value that a caller gave for this setting.

        Raises:
            OptionError: the value is out of range or has the wrong type.
        """
        if self.types:
            check_type(self.name, self.types, self.wanted, given)
        return self.read(given)

    def differs(self, given: Any) -> bool:
        """Returns True if a value is not the default."""
        return bool(self.checked(given) != self.checked(self.default))


def given_of(recorded: Mapping[str, Any]) -> Given:
    """Returns the settings that the entries in a `run.json` describe, as arguments of a replay."""
    found = {name: recorded[each.key] for name, each in SETTINGS.items() if each.key in recorded}
    return cast("Given", found)


def losses_of(given: str | Losses) -> Losses:
    """Returns the loss model that a caller gave as a text or as a value.

    Raises:
        OptionError: the text is not a loss model.
    """
    return parse_losses(given) if isinstance(given, str) else given


def _duration(name: str) -> Callable[[Any], int]:
    def read(value: str | int) -> int:
        try:
            time = parse_duration(value) if isinstance(value, str) else value
        except InputError as error:
            raise OptionError(f"{name}: {error}") from error
        if type(time) is not int or time < 0:
            raise OptionError(f"{name}: {value!r} is not a duration of 0 or more microseconds")
        if time > LONGEST:
            raise OptionError(f"{name}: {value} is longer than 100 years")
        return time

    return read


def _until(value: str | int | None) -> int | None:
    return None if value is None else _duration("until")(value)


def _arrivals(value: str | float | Fraction) -> Fraction:
    hint = "with 2, jobs arrive twice as fast, and with 0.5 half as fast"
    return factor("arrivals cannot be scaled by", value, hint=hint)


def _world(value: str | None) -> str | None:
    if value not in (None, *WORLDS):
        raise OptionError(f"at start: {value!r} is not one of {', '.join(WORLDS)}")
    return value


def _unfinished(text: str) -> str:
    if text in (DRAW, DROP, LIMIT):
        return text
    hint = f"write {DRAW}, {DROP}, {LIMIT}, or the run time of each job, such as 2h"
    try:
        time = parse_duration(text)
    except InputError as error:
        raise OptionError(f"unfinished: {text!r} is not understood", hint=hint) from error
    if not 0 < time <= LONGEST:
        raise OptionError(f"unfinished: {text!r} is not a time above 0 and up to 100 years", hint=hint)
    return exact_duration(time)


# fmt: off
_ALL = (
    Setting(
        "on_preemption", "restart", losses_of,
        "What a preempted job loses: restart, resume, or checkpoint=INTERVAL[,restore=COST].",
        metavar="MODEL", types=(str, Losses), plain=str, recorded=ALWAYS, kind=str,
        wanted="a string such as 'restart' or 'checkpoint=30m', or a Losses",
    ),
    Setting(
        "grace_period", "30s", _duration("grace period"),
        "How long preempted pods keep their resources, if their job does not specify a grace period.",
        unit="_us", metavar="TIME", recorded=ALWAYS, kind=int,
    ),
    Setting(
        "startup", "0s", _duration("startup"),
        "Time from the start of pods until they are ready, which is when their run time begins. It applies "
        "if the trace has no column 'startup'.",
        unit="_us", metavar="TIME",
    ),
    Setting(
        "until", None, _until,
        "Stop at this simulated time, such as 7d. It counts from the trace's origin, or with --window from "
        "the first job.",
        unit="_us", metavar="TIME", recorded=ALWAYS,
    ),
    Setting(
        "scale_arrivals", "1", _arrivals, "Multiply the rate of arrivals; with 2, jobs arrive twice as fast.",
        metavar="FACTOR", plain=str, recorded=ALWAYS, kind=str,
    ),
    Setting(
        "at_start", None, _world,
        "Start with the Workloads and Pods of the manifests (dump), or without them (empty). [default: "
        "empty if the trace's dates precede the manifests' dates, else dump]",
        choices=WORLDS, recorded=IF_USED,
    ),
    Setting(
        "unfinished", DRAW, _unfinished,
        "Run times of unfinished Workloads and Pods of the manifests. With 'draw', they are drawn from the "
        "run times of ended jobs, as in forecasts. With 'limit', they are the longest allowed run times. "
        "A duration such as 2h is the run time of each. With 'drop', the Workloads and Pods are left out.",
        metavar="HOW", types=(str,), recorded=IF_USED,
        wanted="'draw', 'drop', 'limit', or a duration such as '2h', as a string",
    ),
    Setting(
        "seed", 0, int, "Seed of the drawn run times; each twin has its own draws.",
        metavar="N", types=(Integral,), wanted="a whole number", recorded=IF_USED,
    ),
    Setting(
        "ignore_events", False, bool,
        "If a plugin does not support cluster changes, replay without them instead of reporting an error.",
        types=(bool,), wanted="True or False", recorded=IF_USED,
    ),
)
# fmt: on

SETTINGS: Mapping[str, Setting] = {each.name: each for each in _ALL}
"""Maps the name of each setting to everything that harness knows about the setting."""


def takes_settings(function: _F) -> _F:
    """Shows the settings as arguments in the signature of a function, which takes them as `**settings`.

    `help` and notebooks show this signature.
    """
    own = signature(function)
    *others, _ = own.parameters.values()
    settings = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=SETTINGS[name].default, annotation=_text_of(given))
        for name, given in Given.__annotations__.items()
    ]
    shown: Any = function
    shown.__signature__ = own.replace(parameters=[*others, *settings])
    return function


def _text_of(annotation: object) -> object:
    return getattr(annotation, "__forward_arg__", annotation)
