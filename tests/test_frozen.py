"""Read-only mappings are changed by copies."""

from __future__ import annotations

from harness.base.frozen import Frozen, changed


def test_a_changed_copy_keeps_the_order_and_lacks_what_became_none() -> None:
    given = Frozen({"a": 1, "b": 2, "c": 3})
    made = changed(given, {"d": 4, "b": None, "a": 5, "none": None})
    assert list(made.items()) == [("a", 5), ("c", 3), ("d", 4)]
    assert isinstance(made, Frozen)
    assert list(given.items()) == [("a", 1), ("b", 2), ("c", 3)]
