"""The settings of a replay: one table, and everything that is made from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from cli_environment import called
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.base.errors import OptionError
from harness.runs.settings import IF_USED, SETTINGS, Given, Settings, given_of

DURATIONS = st.integers(0, 10**15)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "on_preemption": st.sampled_from(["restart", "resume", "checkpoint=30m,restore=1m"]),
        "grace_period": DURATIONS,
        "startup": DURATIONS,
        "until": st.none() | DURATIONS,
        "scale_arrivals": st.integers(1, 1000).map(lambda number: str(Fraction(number, 8))),
        "at_start": st.sampled_from([None, "empty", "dump"]),
        "unfinished": st.sampled_from(["draw", "drop", "limit", "2h"]),
        "seed": st.integers(0, 2**31),
        "ignore_events": st.booleans(),
    },
)


def test_each_setting_has_a_type_an_entry_and_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """The types of arguments, the types of values, the table and the command line have the same settings."""
    assert [*SETTINGS] == [*Given.__annotations__] == [each.name for each in fields(Settings)]
    assert called(["replay", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in shown for name in SETTINGS)


@given(VALUES)
def test_settings_survive_json_and_requests(values: Given) -> None:
    """Their texts make the same settings, and so does a request that was changed or written as JSON."""
    settings = Settings.checked(values)
    assert Settings.checked(settings.texts()) == settings
    request = harness.Request("t.parquet", **values)
    assert request.settings == settings
    assert replace(request, label="mine").settings == settings
    assert harness.Request.from_json(request.to_json()).settings == settings


@given(VALUES)
def test_a_run_has_what_is_not_the_default(values: Given) -> None:
    """What `run.json` lacks is the default, or belongs to the work in the manifests and the events."""
    settings = Settings.checked(values)
    again = Settings.checked(given_of(dict(settings.recorded())))
    of_plans = ["at_start", "unfinished", "seed", "ignore_events"]
    assert [name for name, each in SETTINGS.items() if each.recorded == IF_USED] == of_plans
    assert replace(again, **{name: getattr(settings, name) for name in of_plans}) == settings


@pytest.mark.parametrize("function", [harness.replay, harness.Request])
def test_help_shows_the_settings(function: Callable[..., object]) -> None:
    """With their defaults, as keyword arguments after all others."""
    shown = inspect.signature(function).parameters
    assert [*shown][-len(SETTINGS) :] == [*SETTINGS]
    assert {name: shown[name].default for name in SETTINGS} == {
        n: each.default for n, each in SETTINGS.items()
    }


def test_a_setting_that_does_not_exist_is_named() -> None:
    """With the one that was probably meant."""
    with pytest.raises(OptionError, match="no setting 'untill'") as error:
        harness.Request("t.parquet", untill="2h")
    assert "until" in str(error.value.hint)
