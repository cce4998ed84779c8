"""The bounds of the requests of heads that lack quota."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness_plugins.kueue.shortcuts.lacks import Kind, Lack, Parts, parts_of, take_in

AMOUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(st.tuples(st.booleans(), AMOUNTS), min_size=1, max_size=6))
def test_bounds_are_the_same_at_once_and_one_by_one(heads: list[tuple[bool, tuple[int, int]]]) -> None:
    """They are the least and the most of each flavor-resource, apart for each reason."""
    flavors = ((0, 1),)
    lacks = [Lack(Kind(flavors, wanting), (amounts,)) for wanting, amounts in heads]
    at_once = parts_of(lacks)
    one_by_one: Parts = {}
    for lack in lacks:
        take_in(one_by_one, lack)
    assert at_once.keys() == one_by_one.keys() == {(flavors, wanting) for wanting, _ in heads}
    for (_, wanting), bounds in at_once.items():
        own = [amounts for other, amounts in heads if other is wanting]
        other = one_by_one[Kind(flavors, wanting)]
        for found, pick in ((bounds.least, min), (bounds.most, max)):
            assert list(found[0]) == [pick(each) for each in zip(*own, strict=True)]
        assert [list(each) for each in (*bounds.least, *bounds.most)] == [
            list(each) for each in (*other.least, *other.most)
        ]
