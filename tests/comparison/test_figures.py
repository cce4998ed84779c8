"""Figures in tables: how a change reads."""

from __future__ import annotations

from harness.analysis.comparison.figures import change_between


def test_a_change_that_rounds_to_zero_has_no_minus() -> None:
    """-0.0 % would look like an improvement."""
    assert change_between(-0.0001, -0.0001, "s", relative=True) == "+0.0 %"
    assert change_between(-0.0002, 0.01, "s", relative=True) == "[+0.0 %, +1.0 %]"
    assert change_between(-0.0006, -0.0006, "s", relative=True) == "-0.1 %"
