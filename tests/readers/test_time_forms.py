"""Forms of times: what a form accepts is read as Python's `strptime` reads it, and no form is half a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.readers.cells import moment
from harness.readers.time_forms import read_form

DATES = st.sampled_from(
    [
        "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%y", "%m/%d/%y", "%y%m%d", "%Y%m%d", "%d %b %Y", "%A, %d. %B %Y",
        "%a %b %d %Y", "%B %d %y", "%Y-%j", "%y%j", "%%%Y (%m+%d)", "%b%d%Y", "%d%b%y",
    ]
)  # fmt: skip
TIMES = st.sampled_from(
    [
        "",
        "%H",
        "%H:%M",
        "%H:%M:%S",
        "%H:%M:%S.%f",
        "%I:%M %p",
        "%I%p",
        "%H%M%S%f",
        "%S.%f %M %H",
        "%p %I:%M:%S",
    ]
)
BETWEEN = st.sampled_from([" ", "T", "  ", "/", " at ", "_"])
ZONES = st.sampled_from(["", "%z", " %z"])
FORMS = st.builds(
    lambda date, between, time, zone: date + (between + time if time else "") + zone,
    DATES,
    BETWEEN,
    TIMES,
    ZONES,
)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 30), timezones=OFFSETS)


def read(form: str, text: str) -> datetime | None:
    """A cell as the form reads it."""
    cells = pl.DataFrame({"cell": [text]})
    found = cells.select(moment("cell", form).value(pl.col("cell"))).to_series()
    assert found.dtype == pl.Datetime("us", "UTC" if "%z" in form else None)
    value = found[0]
    assert value is None or isinstance(value, datetime)
    return value


def by_python(form: str, text: str) -> datetime | None:
    """A text as `strptime` reads it, in UTC where it has an offset; None where it raises."""
    try:
        found = datetime.strptime(text, form)
    except ValueError:
        return None
    return found if found.tzinfo is None else found.astimezone(UTC)


@examples(300)
@given(form=FORMS, when=MOMENTS)
def test_what_strftime_writes_is_read_as_strptime_reads_it(form: str, when: datetime) -> None:
    """Whatever directives are put together to a date, with a time or without."""
    text = when.strftime(form)
    expected = by_python(form, text)
    assert expected is not None
    assert read(form, text) == expected


@examples(300)
@given(when=MOMENTS)
def test_a_form_that_says_all_of_a_moment_gives_it_back(when: datetime) -> None:
    """To the microsecond."""
    form = "%d %b %Y %I:%M:%S.%f %p %z"
    assert read(form, when.strftime(form)) == when


@examples(300)
@given(
    form=FORMS,
    when=MOMENTS,
    at=st.integers(0, 40),
    instead=st.sampled_from(["", *"0123456789", "-", "+", ":", ".", "Z", "p", "M", "99"]),
)
def test_no_text_is_read_as_another_time(form: str, when: datetime, at: int, instead: str) -> None:
    """A text in which one letter is wrong is refused where `strptime` refuses it, and else the same time."""
    written = when.strftime(form)
    text = written[:at] + instead + written[at + 1 :]
    assert read(form, text) == by_python(form, text)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("%Y-%m-%d %H:%M:%S.%f", "2024-03-01 07:01:55.25", datetime(2024, 3, 1, 7, 1, 55, 250_000)),
        ("%Y-%m-%dT%H:%M%z", "2024-03-01T07:01+01:00", datetime(2024, 3, 1, 6, 1, tzinfo=UTC)),
        ("%Y-%m-%dT%H:%M%z", "2024-03-01T07:01Z", datetime(2024, 3, 1, 7, 1, tzinfo=UTC)),
        ("%d %b %Y %I:%M %p", "1 mar 2024 12:05 AM", datetime(2024, 3, 1, 0, 5)),
        ("%d/%m/%y", "1/3/68", datetime(2068, 3, 1)),
        ("%d/%m/%y", "1/3/69", datetime(1969, 3, 1)),
        ("%a %d %b %Y", "Mon 01 Mar 2024", datetime(2024, 3, 1)),
        ("%Y-%m-%d", "2023-02-29", None),
        ("%Y-%m-%d", "0000-01-01", None),
        ("%Y-%m-%d %H:%M:%S", "2024-03-01 07:01:60", None),
        ("%Y-%m-%d %z", "2024-03-01 +2400", None),
        ("%Y-%m-%d %z", "2024-03-01 +00:00:30", None),
    ],
)
def test_a_text_is_the_time_that_it_says(form: str, text: str, expected: datetime | None) -> None:
    """Fractions are of a second, halves of the day count, and what is no time is null."""
    assert read(form, text) == expected


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("%H:%M", "it has no year"),
        ("%Y %H:%M", "it has no month and day"),
        ("%Y-%d", "it has no month and day"),
        ("%d %b %Y %I:%M", "%I needs %p"),
        ("%Y-%m-%d %H %I %p", "%H and %I express the same thing"),
        ("%Y-%m-%b-%d", "%m and %b express the same thing"),
        ("%Y-%j %d", "%j already gives month and day"),
        ("%Y-%m-%d %d", "%d occurs twice"),
        ("%Y-%m-%d %Z", "%Z is none of the directives %Y, %y"),
        ("%Y-%m-%d %", "% is none of the directives %Y, %y"),
        ("%Y-%U-%w", "%U is none of the directives"),
        ("%-d.%m.%Y", "%- is none of the directives"),
    ],
)
def test_a_form_that_is_not_one_moment_is_refused(form: str, says: str) -> None:
    """With what is missing or not known."""
    with pytest.raises(ValueError, match=says):
        read_form(form)
