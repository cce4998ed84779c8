"""A memo keeps answers, but not more than it may."""

from __future__ import annotations

from harness.base.memo import Memo


def test_a_memo_that_is_full_starts_over() -> None:
    memo: Memo[int, str] = Memo(2)
    memo[1] = "one"
    memo[2] = "two"
    assert memo == {1: "one", 2: "two"}
    memo[3] = "three"
    assert memo == {3: "three"}
