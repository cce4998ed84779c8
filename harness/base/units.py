"""Converts quantities, durations and times between text and the integers that harness computes with.

Quantities are integers. The unit is millicores for cpu, and the base unit for every other resource (bytes,
devices, pods). Times are integers in microseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple

from harness.base.errors import InputError

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

INT64_MAX: Final = 2**63 - 1

LONGEST = 100 * 365 * DAY
"""The maximum time or duration. A longer duration probably has a wrong unit, and sums of such times could
exceed a 64-bit integer.
"""

_SUFFIX = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+/(?P<below>[0-9]+)|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+))?)",
    re.ASCII,
)
_MOST_DIGITS = 64
_SLURM_SUFFIX = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
"""The number of bytes for each suffix. Memory without a suffix is in MiB, as in `--noconvert` and JSON."""

_SLURM_MEMORY = re.compile(r"([0-9]{1,18})(\.[0-9]{1,9})?([KMGTPE]?)(?:i?B)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION_UNIT = {"us": 1, "µs": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s|m|h|d|w)", re.ASCII)


class Unit(NamedTuple):
    """The unit in which harness shows quantities of a resource.

    Attributes:
        name: the name, such as `cores`.
        hours: the unit of quantities multiplied by time, such as `core·h`.
        size: the factor between this unit and the integers with which harness computes. For example, it is
            1000 for cores, because harness computes in millicores.
    """

    name: str
    hours: str
    size: int


_DEVICES = Unit("devices", "device·h", 1)
_GIB = Unit("GiB", "GiB·h", 2**30)
_UNITS = {"cpu": Unit("cores", "core·h", 1000), "memory": _GIB, "ephemeral-storage": _GIB}

HOURS_OF_RESOURCES = frozenset(unit.hours for unit in (*_UNITS.values(), _DEVICES))
"""All units of quantities multiplied by time."""


def unit_of(resource: str) -> Unit:
    """Returns the unit in which metrics, tables and reports show a resource."""
    return _UNITS.get(resource, _DEVICES)


def parse_quantity(text: str | int | float) -> Fraction:
    """Returns the exact value of a Kubernetes quantity such as `100m`, `1.5Gi`, `12e6` or `4`.

    Raises:
        InputError: the text is not a quantity.
    """
    if isinstance(text, int) and abs(text) > 10**_MOST_DIGITS:  # Python refuses to write very long numbers
        raise InputError(f"a whole number of more than {_MOST_DIGITS} digits is not a quantity")
    match = _QUANTITY.fullmatch(str(text)) if len(str(text)) <= _MOST_DIGITS else None
    if match is None or isinstance(text, bool):
        raise InputError(f"{_quoted(text)} is not a quantity (examples: 4, 500m, 1.5, 64Gi, 12e6)")
    number = Fraction(match["number"])
    if match["exponent"] is not None:
        exponent = int(match["exponent"])
        if abs(exponent) > 40:
            raise InputError(f"{_quoted(text)} is not a quantity: its exponent is out of range")
        return number * Fraction(10) ** exponent
    return number * _SUFFIX[match["suffix"] or ""]


def exact_number(text: str) -> Fraction:
    """Returns the exact value of a number such as `2`, `-0.5`, `1e-3` or `1/8`.

    Raises:
        ValueError: the text is not a number, or has too many digits to compute with it in reasonable time.
    """
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= _MOST_DIGITS else None
    if match is None or abs(int(match["exponent"] or 0)) > _MOST_DIGITS or not int(match["below"] or 1):
        raise ValueError(f"{_quoted(text)} is not a number")
    return Fraction(text.strip())


def round_up(resource: str, value: Fraction) -> int:
    """Returns an exact value as an integer, in millicores for cpu and in whole units otherwise.

    The function rounds away from zero, as Kubernetes does.
    """
    scaled = value * 1000 if resource == "cpu" else value
    return math.ceil(scaled) if scaled >= 0 else math.floor(scaled)


def to_amount(resource: str, text: str | int | float) -> int:
    """Converts the text of a Kubernetes quantity to an integer. `round_up` rounds fractions.

    Args:
        resource: the resource, which determines the unit: millicores for `cpu`, and the base unit otherwise.
        text: the quantity.

    Raises:
        InputError: the text is not a quantity, or doesn't fit a 64-bit integer.
    """
    amount = round_up(resource, parse_quantity(text))
    if abs(amount) > INT64_MAX:
        raise InputError(f"{_quoted(text)} is too large for {resource}: it must fit a signed 64-bit integer")
    return amount


def format_amount(resource: str, amount: int) -> str:
    """Returns a quantity in the form of Kubernetes, in cores for cpu and in exact binary units for bytes."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") and amount:
        for suffix in ("Ti", "Gi", "Mi", "Ki"):
            if amount % int(_SUFFIX[suffix]) == 0:
                return f"{amount // int(_SUFFIX[suffix])}{suffix}"
    return str(amount)


def format_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Returns the quantity of each resource in the form of Kubernetes. See `format_amount`."""
    return {resource: format_amount(resource, amount) for resource, amount in amounts.items()}


def short_amount(resource: str, amount: float) -> str:
    """Returns a short form of a quantity, in cores, GiB or the resource's own unit."""
    if resource == "cpu":
        return short_number(amount / 1000)
    if resource in ("memory", "ephemeral-storage"):
        return f"{short_number(amount / 2**30)}Gi"
    return short_number(amount)


def short_number(number: float) -> str:
    """Returns a short form of a number, which has three digits below 100 and no decimals otherwise."""
    return f"{number:,.0f}" if number >= 100 or number == int(number) else plain_number(number, 3)


def plain_number(number: float, digits: int) -> str:
    """Returns a number with `digits` significant digits and without an exponent."""
    return f"{Decimal(f'{number:.{digits}g}'):,f}"


def slurm_memory(text: str) -> tuple[int, bool]:
    """Returns the number of bytes in a text such as `1024M` or `700`, and whether the number is rounded.

    Slurm has rounded every number with decimals, such as `1.50G`.

    Raises:
        ValueError: the text is not an amount of memory.
    """
    found = _SLURM_MEMORY.fullmatch(text)
    if not found:
        raise ValueError("is not an amount of memory such as 4096M or 1.50G")
    scale = _SLURM_SUFFIX[found[3]]
    fraction = found[2] or ""
    amount = int(found[1]) * scale
    if fraction:
        amount += round(int(fraction[1:]) * scale / 10 ** (len(fraction) - 1))
    if amount > INT64_MAX // 2:
        raise ValueError("is more memory than 64 bits can count")
    return amount, bool(fraction)


def parse_duration(text: str) -> int:
    """Returns the microseconds of a duration such as `30s`, `1h30m`, `7d`, `1.5h` or `0`.

    Raises:
        InputError: the text is not a duration, or the duration is longer than 100 years.
    """
    text = text.strip()
    if text == "0":
        return 0
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text or len(text) > 64:
        raise InputError(f"{_quoted(text)} is not a duration (examples: 30s, 10m, 1h30m, 7d)")
    total = sum(
        (Fraction(number) if "." in number else int(number)) * _DURATION_UNIT[unit] for number, unit in parts
    )
    if total > LONGEST:
        raise InputError(f"{_quoted(text)} is longer than 100 years")
    return round(total)


def format_duration(microseconds: int | float) -> str:
    """Returns a short form of a duration with its two largest units, such as `6h12m`, `3d04h` or `42s`."""
    sign = "-" if microseconds < 0 else ""
    left = abs(round(microseconds))
    if left < SECOND:
        return f"{sign}{left // 1000}ms" if left >= 1000 else f"{sign}{left}us" if left else "0s"
    seconds = (left + SECOND // 2) // SECOND
    if seconds < 60:
        return f"{sign}{seconds}s"
    if seconds < 3600:
        return f"{sign}{seconds // 60}m{seconds % 60:02d}s"
    if seconds < 86400:
        return f"{sign}{seconds // 3600}h{seconds % 3600 // 60:02d}m"
    return f"{sign}{seconds // 86400}d{seconds % 86400 // 3600:02d}h"


def exact_duration(microseconds: int) -> str:
    """Format a duration exactly, in microseconds if `format_duration` would round it."""
    short = format_duration(microseconds)
    return short if microseconds < 0 or parse_duration(short) == microseconds else f"{microseconds}us"


def since_1970(moment: datetime, zone: tzinfo = UTC) -> int:
    """Returns a time in microseconds since 1970. If the time has no UTC offset, it is in `zone`."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=zone)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def moment_at(time: int) -> datetime:
    """Returns the date and time in UTC for a time in microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


def date_text(time: int) -> str:
    """Returns a time in the format of manifests, in UTC and whole seconds, such as `2026-01-31T08:00:00Z`."""
    return moment_at(time).strftime("%Y-%m-%dT%H:%M:%SZ")


def _quoted(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
