"""Values are compared, hashed and shown by their fields, as by methods that a dataclass makes itself."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from inspect import signature
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.values import Fixed, Value, fixed


@fixed()
class Mine(Value):
    """A value."""

    name: str
    amount: int = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Usual:
    """The same as a dataclass makes it."""

    name: str
    amount: int = 0
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)


@fixed(slots=False)
class One(Value):
    """A value with one field."""

    name: str


@fixed(slots=False)
class Nothing(Value):
    """A value without fields."""


@fixed()
class Later(Value):
    """A value of which fields are made, or can only be named."""

    name: str
    several: list[int] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict, init=False)
    amount: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        """See that the name is one."""
        if not self.name:
            raise ValueError("no name")


@fixed()
class Itself(Fixed):
    """What is equal to itself alone."""

    name: str


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
    with pytest.raises(FrozenInstanceError):
        del mine.amount
    with pytest.raises(FrozenInstanceError):
        One("a").other = 2  # type: ignore[attr-defined]
    assert replace(mine, amount=2) == Mine("a", 2, "n", "s")
    for each in (mine, One("a"), Nothing(), Later("a", [1])):
        assert pickle.loads(pickle.dumps(each)) == each


def test_they_are_made_as_dataclasses_are() -> None:
    """With defaults, which are made for each value where they can change, with names, and with checks."""
    one, two = Later("a"), Later("a", [1], amount=4)
    one.several.append(2)
    assert (one.several, two.several, Later("a").several) == ([2], [1], [])
    assert (one.texts, one.amount, two.amount) == ({}, 3, 4)
    assert replace(two, name="b") == Later("b", [1], amount=4)
    assert [(each.name, each.default) for each in signature(Mine).parameters.values()] == [
        (each.name, each.default) for each in signature(Usual).parameters.values()
    ]
    for arguments in ({"name": ""}, {}, {"name": "a", "texts": {}}, {"name": "a", "other": 1}):
        with pytest.raises((ValueError, TypeError)):
            Later(**arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Later("a", [1], 4)  # type: ignore[misc]


def test_one_that_is_not_compared_is_itself() -> None:
    """It is shown and kept from changes all the same."""
    one = Itself("a")
    assert (one == Itself("a"), one == one, repr(one)) == (False, True, "Itself(name='a')")
    with pytest.raises(FrozenInstanceError):
        one.name = "b"  # type: ignore[misc]
