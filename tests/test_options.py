"""Rules of the options that plugins declare."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import OptionError
from harness.options import Option, boolean, did_you_mean, resolve
from harness.units import SECOND, parse_duration

ORDER = Option("order", "fifo", "the order of the queue", choices=("fifo", "priority"))
BORROW = Option("borrow", True, "whether to borrow", type=boolean)
DEPTH = Option("depth", 3, "how deep", type=int)
FACTOR = Option("factor", 0.5, "how much", type=float)
LATENCY = Option("latency", SECOND, "how long", type=parse_duration)
LIMIT = Option("limit", None, "at most so many", type=int)
ALL = (ORDER, BORROW, DEPTH, FACTOR, LATENCY, LIMIT)


def test_what_is_not_given_has_its_default() -> None:
    """Every declared option has a value, sorted by name."""
    values = resolve(ALL, {}, owner="policy p")
    assert values == {
        "borrow": True, "depth": 3, "factor": 0.5, "latency": SECOND, "limit": None, "order": "fifo",
    }  # fmt: skip
    assert list(values) == sorted(values)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("order", "priority", "priority"),
        ("borrow", "No", False),
        ("borrow", " on ", True),
        ("depth", "7", 7),
        ("factor", "2", 2.0),
        ("latency", "2s", 2 * SECOND),
        ("limit", "9", 9),
    ],
)
def test_text_is_parsed_by_the_type(name: str, text: str, value: object) -> None:
    """What stands on the command line is text."""
    parsed = resolve(ALL, {name: text}, owner="policy p")[name]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("order", "lifo"), ("borrow", "maybe"), ("depth", "many"), ("latency", "5"), ("limit", "x")],
)
def test_text_that_does_not_fit_is_refused(name: str, value: str) -> None:
    """The message names the option."""
    with pytest.raises(OptionError, match=name):
        resolve(ALL, {name: value}, owner="policy p")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", 2.0),
        ("depth", True),
        ("depth", None),
        ("borrow", 1),
        ("borrow", None),
        ("order", None),
        ("order", 1),
        ("limit", 1.5),
        ("limit", []),
        ("factor", None),
        ("factor", False),
    ],
)
def test_value_of_another_type_is_refused(name: str, value: object) -> None:
    """From Python a value must be of the option's own type; None only where None is the default."""
    with pytest.raises(OptionError, match=name):
        resolve(ALL, {name: value}, owner="policy p")


def test_value_of_the_type_is_taken() -> None:
    """From Python a value of the type is taken as it is; a whole number is a number."""
    given_values = {"depth": 4, "limit": None, "factor": 2, "borrow": False}
    assert resolve(ALL, given_values, owner="policy p") | {"order": "", "latency": 0} == {
        "borrow": False, "depth": 4, "factor": 2.0, "latency": 0, "limit": None, "order": "",
    }  # fmt: skip


def test_unknown_option_names_owner_and_what_was_meant() -> None:
    """A misspelt name is never taken in silence."""
    with pytest.raises(OptionError, match="policy p has no option 'ordr'") as caught:
        resolve(ALL, {"ordr": "fifo"}, owner="policy p")
    assert caught.value.hint == "did you mean 'order'?"


def test_hint_lists_what_there_is_when_nothing_is_close() -> None:
    """Without a close name the hint lists all names."""
    assert did_you_mean("zzz", ["b", "a"]) == "there is: a, b"
    assert did_you_mean("zzz", []) == "there is none"


@given(
    st.sampled_from([option.name for option in ALL]),
    st.text(max_size=8) | st.integers() | st.floats() | st.none(),
)
def test_any_value_fits_or_is_an_option_error(name: str, value: object) -> None:
    """No value raises anything but OptionError."""
    with contextlib.suppress(OptionError):
        resolve(ALL, {name: value}, owner="policy p")
