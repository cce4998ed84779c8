"""Values are compared, hashed and shown by their fields, as by methods that a dataclass makes itself."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.values import Value


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Mine(Value):
    """A value."""

    name: str
    amount: int = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Usual:
    """The same with methods of its own."""

    name: str
    amount: int = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, repr=False, eq=False)
class One(Value):
    """A value with one field."""

    name: str


@dataclass(frozen=True, repr=False, eq=False)
class Nothing(Value):
    """A value without fields."""


FIELDS = st.tuples(
    st.sampled_from("ab"), st.integers(0, 1), st.sampled_from(["", "n"]), st.sampled_from("xy")
)


@given(FIELDS, FIELDS)
def test_they_are_equal_and_shown_as_usual_dataclasses_are(first: Any, second: Any) -> None:
    """Also of fields that are not compared, or not shown."""
    mine, other = Mine(*first), Mine(*second)
    assert (mine == other) == (Usual(*first) == Usual(*second))
    if mine == other:
        assert hash(mine) == hash(other)
    assert repr(mine) == repr(Usual(*first)).replace("Usual", "Mine")


def test_values_of_different_classes_differ() -> None:
    """Although their fields are equal; those with one field or none are values too."""
    assert One("a") != Mine("a")
    assert One("a") != "a"
    assert (One("a"), Nothing()) == (One("a"), Nothing())
    assert len({One("a"), One("a"), One("b"), Nothing(), Nothing()}) == 3


def test_they_stay_frozen_dataclasses() -> None:
    """Nothing can be set; copies with changes and pickles are equal values."""
    mine = Mine("a", 1, "n", "s")
    with pytest.raises(FrozenInstanceError):
        mine.amount = 2  # type: ignore[misc]
    assert replace(mine, amount=2) == Mine("a", 2, "n", "s")
    assert pickle.loads(pickle.dumps(mine)) == mine
