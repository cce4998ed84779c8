"""Reads the specification of a synthetic trace, or reports every fault with its file and field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from harness.base.errors import Fault, InputError, SpecError
from harness.base.units import INT64_MAX, LONGEST, parse_duration, to_amount
from harness.cluster.yaml.documents import read_specification
from harness.cluster.yaml.fields import Fields, shown
from harness.trace.generate.arrivals import Bursty, Diurnal, Poisson, Process, Regular
from harness.trace.generate.distributions import (
    Choice,
    Clipped,
    Distribution,
    LogNormal,
    Pareto,
    Uniform,
    Weibull,
)
from harness.trace.generate.kueue_file import is_kueue, read_kueue
from harness.trace.generate.spec import MOST_JOBS, MOST_STREAMS, JobKind, Spec, Stream
from harness.trace.schema import REQUEST
from harness.trace.typed import reserved
from harness.trace.validate import LONGEST_NAME

_INT32_MAX = 2**31 - 1
_HIGHEST_RATE = 1e-2
"""The highest rate in jobs per microsecond, which is 10,000 per second. Sums of higher rates exceed 64 bits.
"""

_Value = Callable[[Any], int]


def load_spec(path: Path) -> Spec:
    """Read a file with a specification for harness or for Kueue's performance generator.

    Raises:
        SpecError: the file cannot be read, or is faulty.
    """
    content, data = read_specification(path, "a specification")
    faults: list[Fault] = []
    fields = Fields(content, "", faults)
    source = f"generated from {path.name} (sha256 {sha256(data).hexdigest()[:12]})"
    spec = (read_kueue if is_kueue(fields) else _read)(fields, source)
    faults += _long_names(spec)
    faults += [Fault(name, "is not a known field; is it misspelled?") for name in fields.unread()]
    if faults:
        raise SpecError(str(path), faults, hint="docs/generate.md describes every field")
    return spec


def _long_names(spec: Spec) -> Iterator[Fault]:
    """Yields a fault for each tenant with a namespace or jobs whose names would be too long for a trace."""
    for stream in spec.streams:
        longest = f"{stream.name}{MOST_JOBS}{stream.suffix}"
        if max(len(longest.encode()), len(stream.namespace.encode())) > LONGEST_NAME:
            why = f"names of jobs and namespaces can have at most {LONGEST_NAME:,} bytes"
            yield Fault("", f"queue {shown(stream.queue)}: {why}, and a job is named after its queue")


def _read(fields: Fields, source: str) -> Spec:
    jobs = fields.integer("jobs", 0, least=1, most=MOST_JOBS) or None
    span = _scalar(fields, "span", _duration, 1) if "span" in fields else None
    tenants = fields.items("tenants")
    if not tenants:
        fields.fault("tenants", "is missing: give a list of tenants")
    streams = [stream for tenant in tenants for stream in _tenant(tenant)]
    if len(streams) > MOST_STREAMS:
        fields.fault("tenants", f"are {len(streams):,} in total, but there can be at most {MOST_STREAMS:,}")
    names = Counter(stream.name for stream in streams)
    for name in sorted(name for name, count in names.items() if count > 1)[:10]:
        fields.fault("tenants", f"{name[:-1]!r} occurs twice; give each tenant its own queue")
    if jobs is None and span is None and any(stream.most is None for stream in streams):
        fields.fault("jobs", "is missing, and 'span' too: give one of them to limit the trace")
    return Spec(tuple(streams), jobs, span, source)


def _tenant(fields: Fields) -> list[Stream]:
    queue = fields.string("queue", required=True)
    count = fields.integer("count", 1, least=1, most=MOST_STREAMS)
    arrivals = _arrivals(fields.child("arrivals"))
    kinds = tuple(_kind(item) for item in fields.items("jobs"))
    if not kinds:
        fields.fault("jobs", "is missing: give a list of the tenant's kinds of jobs")
    most = fields.integer("at_most", 0, least=1, most=MOST_JOBS) or None
    namespace = fields.string("namespace")
    width = len(str(count - 1))
    names = [queue] if count == 1 else [f"{queue}-{number:0{width}}" for number in range(count)]
    return [Stream(f"{name}.", name, arrivals, kinds, most, namespace) for name in names]


def _kind(fields: Fields) -> JobKind:
    requests = fields.child("requests")
    found = {name: _distribution(requests, name, partial(to_amount, name)) for name in requests}
    for name in found:
        if (why := reserved(f"{REQUEST}{name}")) is not None:
            requests.fault(name, why)
    if not found:
        fields.fault("requests", "is missing: a job must request at least one resource")
    return JobKind(
        _number(fields, "weight", 1.0),
        _distribution(fields, "duration", _duration, most=LONGEST),
        found,
        _distribution(fields, "pods", _whole, least=1, most=_INT32_MAX) if "pods" in fields else None,
        fields.boolean("gang") if "gang" in fields else None,
        _distribution(fields, "priority", _whole, least=-_INT32_MAX, most=_INT32_MAX)
        if "priority" in fields
        else None,
    )


def _arrivals(fields: Fields) -> Process:
    match _only(fields, ("poisson", "diurnal", "bursty", "regular")):
        case "poisson":
            return Poisson(_rate(fields.child("poisson")))
        case "diurnal":
            given = fields.child("diurnal")
            return Diurnal(
                _rate(given),
                _number(given, "swing", 0.5, most=1.0),
                given.integer("peak", 14, least=0, most=23),
                _number(given, "weekend", 1.0, least=0.0),
            )
        case "bursty":
            states = fields.items("bursty")
            if len(states) < 2:
                fields.fault("bursty", "must be a list of two or more states, each with 'rate' and 'stay'")
            rates = [_rate(state, least=0.0) for state in states]
            if states and not any(rates):
                fields.fault("bursty", "no state has a rate above 0")
            return Bursty(rates or [1.0], [_scalar(state, "stay", _duration, 1) for state in states] or [1])
        case "regular":
            every = _scalar(fields.child("regular"), "every", _duration, 1)
            return Regular(every, every)
        case _:
            return Regular(1, 1)


def _distribution(
    fields: Fields, name: str, value: _Value, *, least: int = 0, most: int = INT64_MAX // 2
) -> Distribution:
    raw = fields.raw(name)
    if not isinstance(raw, dict):
        constant = _value(fields, name, raw, value, least, most)
        return Choice([constant], [1.0])
    given = fields.child(name)
    scalar = partial(_scalar, given, value=value, most=most)
    inner: Distribution
    match _only(given, ("choice", "uniform", "exponential", "lognormal", "weibull", "pareto"), "min", "max"):
        case "choice":
            inner = _choice(given.child("choice"), value, least, most)
        case "uniform":
            bounds = given.child("uniform")
            low, high = (_scalar(bounds, end, value, most=most) for end in ("from", "to"))
            if low > high:
                bounds.fault("to", "is below from")
            inner = Uniform(low, max(low, high))
        case "exponential":
            inner = Weibull(_scalar(given.child("exponential"), "mean", value, 1, most))
        case "lognormal":
            shape = given.child("lognormal")
            median, p90 = (_scalar(shape, each, value, 1, most) for each in ("median", "p90"))
            if p90 < median:
                shape.fault("p90", "is below the median")
            inner = LogNormal(median, max(median, p90))
        case "weibull":
            shape = given.child("weibull")
            inner = Weibull(_scalar(shape, "scale", value, 1, most), _number(shape, "shape", None))
        case "pareto":
            shape = given.child("pareto")
            inner = Pareto(_scalar(shape, "least", value, 1, most), _number(shape, "shape", None))
        case _:
            return Choice([least], [1.0])
    low = scalar("min") if "min" in given else least
    high = scalar("max") if "max" in given else most
    if low > high:
        given.fault("max", "is below min")
    return Clipped(inner, max(low, least), min(high, most))


def _choice(fields: Fields, value: _Value, least: int, most: int) -> Distribution:
    options, weights = [], []
    for name in fields:
        options.append(_value(fields, name, name, value, least, most))
        weights.append(_number(fields, name, None, least=0.0))
    if not any(weights):
        fields.fault("", "needs at least one value with a weight above 0")
        return Choice([least], [1.0])
    return Choice(options, weights)


def _only(fields: Fields, names: tuple[str, ...], *further: str) -> str:
    """Returns the only one of `names` that is present. Otherwise, adds a fault and returns ""."""
    there = [name for name in names if name in fields]
    if len(there) != 1 or any(name not in (*names, *further) for name in fields):
        fields.fault("", f"must be exactly one of {', '.join(names)}")
        fields.ignore_rest()
        return ""
    return there[0]


def _scalar(fields: Fields, name: str, value: _Value, least: int = 0, most: int = INT64_MAX // 2) -> int:
    return _value(fields, name, fields.raw(name), value, least, most)


def _value(fields: Fields, name: str, raw: Any, value: _Value, least: int, most: int) -> int:
    """Returns a value in its own unit. If it cannot be read, adds a fault and returns the minimum."""
    if raw is None:
        fields.fault(name, "is missing")
        return least
    try:
        found = value(raw)
    except (InputError, ValueError, TypeError) as error:
        fields.fault(name, str(error) if isinstance(error, InputError) else f"{shown(raw)} is not understood")
        return least
    if not least <= found <= most:
        fields.fault(name, f"{shown(raw)} is out of range")
        return least
    return found


def _number(
    fields: Fields, name: str, default: float | None, *, least: float = 1e-6, most: float = 1e9
) -> float:
    raw = fields.raw(name)
    if raw is None and default is not None:
        return default
    if raw is None:
        fields.fault(name, "is missing")
    elif isinstance(raw, bool) or not isinstance(raw, int | float) or not isfinite(raw):
        fields.fault(name, f"must be a number, not {shown(raw)}")
    elif not least <= raw <= most:
        fields.fault(name, f"{shown(raw)} is out of range ({least:g} to {most:g})")
    else:
        return float(raw)
    return 1.0


def _rate(fields: Fields, *, least: float = 1e-15) -> float:
    """Converts a rate such as `40/h` to jobs per microsecond."""
    raw = fields.raw("rate")
    count, slash, unit = str(raw).partition("/")
    try:
        rate = float(count) / parse_duration(unit if unit[:1].isdigit() else f"1{unit}")
    except (InputError, ValueError, ZeroDivisionError):
        rate = -1.0
    if not slash or not least <= rate <= _HIGHEST_RATE:
        fields.fault("rate", f"must be a rate such as 40/h or 1/90s, at most 10000/s, not {shown(raw)}")
        return 1e-6
    return rate


def _duration(raw: Any) -> int:
    if isinstance(raw, str):
        return parse_duration(raw)
    if raw == 0 and not isinstance(raw, bool):
        return 0
    raise InputError(f"{shown(raw)} is not a duration (examples: 30s, 10m, 1h30m, 7d)")


def _whole(raw: Any) -> int:
    if isinstance(raw, bool) or (isinstance(raw, float) and not raw.is_integer()):
        raise InputError(f"{shown(raw)} is not a whole number")
    return int(raw)
