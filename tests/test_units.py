"""Rules of quantities, durations and how they are written."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.base.units import (
    DAY,
    HOUR,
    INT64_MAX,
    LONGEST,
    MINUTE,
    SECOND,
    format_amount,
    format_duration,
    parse_duration,
    parse_quantity,
    to_amount,
)

# What Kubernetes' own Quantity type answers for MilliValue (cpu) and Value (memory).
WORKED = [
    ("cpu", "100m", 100),
    ("cpu", "1", 1000),
    ("cpu", "1.5", 1500),
    ("cpu", ".5", 500),
    ("cpu", "5.", 5000),
    ("cpu", "0.0001", 1),
    ("cpu", "1n", 1),
    ("cpu", "1u", 1),
    ("cpu", "1000001u", 1001),
    ("cpu", "2k", 2_000_000),
    ("cpu", "+3", 3000),
    ("cpu", "1e3", 1_000_000),
    ("memory", "0", 0),
    ("memory", "1e3", 1000),
    ("memory", "1E3", 1000),
    ("memory", "12e6", 12_000_000),
    ("memory", "1e-3", 1),
    ("memory", "1E", 10**18),
    ("memory", "0.5Gi", 2**29),
    ("memory", "1.5Gi", 3 * 2**29),
    ("memory", "1Ki", 1024),
    ("memory", "7Ei", 7 * 2**60),
    ("memory", "128974848", 128974848),
    ("memory", "129e6", 129_000_000),
    ("memory", "129M", 129_000_000),
    ("memory", "128974848000m", 128974848),
    ("memory", "123Mi", 128974848),
    ("memory", "1m", 1),
    ("memory", "1.0000000001", 2),
    ("nvidia.com/gpu", "8", 8),
    ("pods", "110", 110),
    ("memory", "9223372036854775807", INT64_MAX),
]


@pytest.mark.parametrize(("resource", "text", "amount"), WORKED)
def test_quantity_is_what_kubernetes_reads(resource: str, text: str, amount: int) -> None:
    """Quantities are exact, and round up to millicores or whole units."""
    assert to_amount(resource, text) == amount


@pytest.mark.parametrize(
    ("resource", "number", "amount"), [("cpu", 2, 2000), ("cpu", 0.5, 500), ("memory", 1e21 / 1e3, 10**18)]
)
def test_number_is_a_quantity(resource: str, number: float, amount: int) -> None:
    """YAML and JSON may give a quantity as a number."""
    assert to_amount(resource, number) == amount


@pytest.mark.parametrize(("text", "amount"), [("-1n", -1), ("-0.5", -1), ("-2", -2)])
def test_negative_quantity_rounds_away_from_zero(text: str, amount: int) -> None:
    """A negative quantity never becomes 0, so that whoever wants none below zero sees it."""
    assert to_amount("memory", text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1K",
        "1ki",
        "1mi",
        "1e",
        "1e1.5",
        "Gi",
        ".",
        "-",
        "0x10",
        "1_000",
        "1,5",
        "٣",
        "1Gib",
        "1e999",
        "1e-999",
        "nan",
        "inf",
        float("nan"),
        float("inf"),
        True,
        pytest.param(10**5000, id="5001 digits"),
        "9" * 100,
    ],
)
def test_what_is_no_quantity_is_refused(text: str | float) -> None:
    """Anything else is an input error whose message stays short."""
    with pytest.raises(InputError) as caught:
        parse_quantity(text)
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("text", ["9223372036854775808", "8Ei", "10E", "1e19"])
def test_quantity_beyond_64_bits_is_refused(text: str) -> None:
    """Amounts are signed 64-bit integers."""
    with pytest.raises(InputError, match="64-bit"):
        to_amount("memory", text)


@given(st.text(max_size=12) | st.from_regex(r"[+-]?[0-9.]{1,8}[eEnumkKMGTPi0-9+-]{0,4}", fullmatch=True))
def test_any_text_is_a_quantity_or_an_input_error(text: str) -> None:
    """No text raises anything but InputError."""
    try:
        value = parse_quantity(text)
    except InputError:
        return
    assert isinstance(value, Fraction)


@given(st.sampled_from(["cpu", "memory", "pods"]), st.integers(0, INT64_MAX))
def test_formatted_amount_reads_back(resource: str, amount: int) -> None:
    """What is written is exact."""
    assert to_amount(resource, format_amount(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 3 * 2**29, "1536Mi"),
        ("memory", 0, "0"),
        ("memory", 1000, "1000"),
        ("memory", 2**41, "2Ti"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amount_is_written_as_people_do(resource: str, amount: int, text: str) -> None:
    """Cores, binary units of bytes where they are exact, plain numbers else."""
    assert format_amount(resource, amount) == text


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("0", 0),
        ("30s", 30 * SECOND),
        ("1h30m", 90 * MINUTE),
        ("7d", 7 * DAY),
        ("1.5h", 90 * MINUTE),
        ("250ms", 250000),
        ("3us", 3),
        ("3µs", 3),
        ("1w", 7 * DAY),
        (" 10m ", 10 * MINUTE),
        ("0s", 0),
    ],
)
def test_duration_is_read(text: str, microseconds: int) -> None:
    """Durations are numbers with units, one after the other."""
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 s", "1h 30m", "5y", "1e3s", "5S", "h" * 100, "9" * 70 + "s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A number without a unit is no duration: seconds and minutes are too easily confused."""
    with pytest.raises(InputError):
        parse_duration(text)


def test_a_duration_of_more_than_100_years_is_refused() -> None:
    """Sums of times are signed 64-bit microseconds, and a longer one is a mistaken unit."""
    assert parse_duration("36500d") == LONGEST
    for text in ("36501d", "99999999999999w"):
        with pytest.raises(InputError, match="longer than 100 years"):
            parse_duration(text)


@given(st.text(alphabet="0123456789.smhduwµ -", max_size=12))
def test_any_text_is_a_duration_or_an_input_error(text: str) -> None:
    """No text raises anything but InputError, and none is negative."""
    with contextlib.suppress(InputError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0s"),
        (7, "7us"),
        (350000, "350ms"),
        (42 * SECOND, "42s"),
        (59999999, "1m00s"),
        (6 * HOUR + 12 * MINUTE, "6h12m"),
        (3 * DAY + 4 * HOUR, "3d04h"),
        (-90 * SECOND, "-1m30s"),
        (HOUR - 1, "1h00m"),
        (0.4, "0s"),
    ],
)
def test_duration_is_written_at_a_glance(microseconds: float, text: str) -> None:
    """The two largest units, rounded."""
    assert format_duration(microseconds) == text
