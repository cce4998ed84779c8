"""Rules of the options that plugins declare."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import OptionError
from harness.base.options import Option, boolean, did_you_mean, factor, factor_text, resolve
from harness.base.units import SECOND, parse_duration

ORDER = Option("order", "fifo", "the order of the queue", choices=("fifo", "priority"))
BORROW = Option("borrow", True, "whether to borrow", type=boolean)
DEPTH = Option("depth", 3, "how deep", type=int)
FACTOR = Option("factor", 0.5, "how much", type=float)
LATENCY = Option("latency", SECOND, "how long", type=parse_duration)
LIMIT = Option("limit", None, "at most so many", type=int)
ALL = (ORDER, BORROW, DEPTH, FACTOR, LATENCY, LIMIT)


def test_a_default_that_would_need_a_conversion_is_refused() -> None:
    """Otherwise a policy gets text by default, and a number if the user sets the same value."""
    with pytest.raises(OptionError, match="option patience: its default '6h' is text, which") as raised:
        Option("patience", "6h", "how long", type=parse_duration)
    assert raised.value.hint == "write the default as 21600000000"
    assert Option("patience", "", "how long, or empty for no end", type=parse_duration).default == ""


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


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    """Also from Python, and as a default: a run says its options in JSON, which has no such numbers."""
    with pytest.raises(OptionError, match=r"policy p, option factor: .* is not a finite number"):
        resolve(ALL, {"factor": value}, owner="policy p")
    with pytest.raises(OptionError, match=r"option endless: run.json cannot store its default"):
        Option("endless", value, "a limit", type=float)


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
    assert did_you_mean("FairSharing", ["fairsharing", "none"]) == "did you mean 'fairsharing'?"
    assert did_you_mean("evictionlatency", ["evictionLatency"]) == "did you mean 'evictionLatency'?"


@given(
    st.sampled_from([option.name for option in ALL]),
    st.text(max_size=8) | st.integers() | st.floats() | st.none(),
)
def test_any_value_fits_or_is_an_option_error(name: str, value: object) -> None:
    """No value raises anything but OptionError."""
    with contextlib.suppress(OptionError):
        resolve(ALL, {name: value}, owner="policy p")


@pytest.mark.parametrize(
    ("given", "exact", "text"),
    [
        ("0.57", Fraction(57, 100), "0.57"),
        (0.57 + 1e-16, Fraction("0.5700000000000001"), "0.5700000000000001"),
        (1e-05, Fraction(1, 10**5), "0.00001"),
        ("1/3", Fraction(1, 3), "1/3"),
        (Fraction(1, 7), Fraction(1, 7), "1/7"),
        (2, Fraction(2), "2"),
        (1e6, Fraction(10**6), "1000000"),
    ],
)
def test_a_factor_is_taken_exactly_and_shown_as_it_was_written(
    given: str | float | Fraction, exact: Fraction, text: str
) -> None:
    """Also one that a computation gave, whatever its last digits are."""
    taken = factor("arrivals cannot be scaled by", given, hint="")
    assert taken == exact
    assert factor_text(str(taken)) == text
    assert factor("arrivals cannot be scaled by", str(taken), hint="") == exact


@pytest.mark.parametrize("given", ["0", -1, "1e-7", 1_000_001, float("nan"), "much", Fraction(1, 10**40)])
def test_a_factor_out_of_range_is_refused_with_the_range(given: str | float | Fraction) -> None:
    """From a millionth to a million; the hint says so."""
    with pytest.raises(OptionError, match="arrivals cannot be scaled by") as refused:
        factor("arrivals cannot be scaled by", given, hint="2 is twice")
    assert refused.value.hint == "2 is twice; from 0.000001 to 1000000"


def test_a_factor_of_endless_digits_is_refused_with_the_reason() -> None:
    """No float has more than thirty decimals in this range."""
    with pytest.raises(OptionError, match="it has more than 30 decimals"):
        factor("arrivals cannot be scaled by", Fraction(1, 3**70) + 1, hint="")


@pytest.mark.parametrize("default", [{1}, object(), float("nan"), [b"x"], {5: 1}, Path()])
def test_a_default_can_be_kept_in_a_run(default: Any) -> None:
    """What JSON does not have is refused when the option is made, not when the replay is over."""
    with pytest.raises(OptionError, match=r"option x: run\.json cannot store its default, "):
        Option("x", default, "h")


def test_a_value_can_be_kept_in_a_run() -> None:
    """What a plugin's own parser makes is refused when it is chosen."""
    names = Option("names", None, "h", type=lambda text: set(text.split(",")))
    with pytest.raises(
        OptionError, match=r"policy p, option names: run\.json cannot store the value, of type set"
    ):
        resolve([names], {"names": "a,b"}, owner="policy p")
    assert Option("names", ("a",), "h", type=lambda text: text.split(",")).parse("a,b") == ["a", "b"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"name": "a=b"}, "its name may contain only letters"),
        ({"name": 5}, "its name may contain only letters"),
        ({"help": None}, "its help must be a string"),
        ({"type": "int"}, "its type must be a function"),
        ({"choices": "ab"}, "its choices must be a tuple of strings"),
        ({"choices": (1, 2)}, "its choices must be a tuple of strings"),
    ],
)
def test_an_option_can_be_written_and_shown(how: Any, why: str) -> None:
    """It says what is wrong with it when it is made."""
    with pytest.raises(OptionError, match=why):
        Option(**{"name": "x", "default": None, "help": "h", **how})
