"""Plugins: who registers what, and what happens when one is broken."""

from __future__ import annotations

import importlib.metadata
import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from policies import Greedy

import harness
from harness import hookimpl
from harness.base import build
from harness.base.errors import PluginError
from harness.cli import cli
from harness.plugins import loading as plugins
from harness.plugins import registries

ROOT = Path(__file__).parents[1]


def plugin(**functions: Callable[..., Any]) -> types.SimpleNamespace:
    """A plugin object with these hooks."""
    return types.SimpleNamespace(**{name: hookimpl(function) for name, function in functions.items()})


def registers_greedy(name: str) -> types.SimpleNamespace:
    def hook(register: registries.Register[registries.PolicySpec]) -> None:
        register(registries.PolicySpec(name, Greedy, help="starts what fits"))

    return plugin(harness_register_policies=hook)


def test_the_built_ins_come_through_their_entry_points() -> None:
    """Every built-in policy, reader and metric is owned by an entry point of our own distribution."""
    loaded = plugins.load()
    assert [info.error for info in loaded.found] == [None] * len(loaded.found)
    assert {info.distribution for info in loaded.found} == {"harness-replay"}
    assert loaded.policy("none").owner == "none"


def test_two_plugins_of_one_name_are_an_error_that_names_both() -> None:
    """A clash says who registered the policy twice and how to leave one out."""
    both = {"left": registers_greedy("greedy"), "right": registers_greedy("greedy")}
    with pytest.raises(
        PluginError, match="policy 'greedy' is registered by both 'left' and 'right'"
    ) as clash:
        plugins.load(extra=both)
    assert clash.value.hint == "leave one of them out, for example with --no-plugin right"
    assert plugins.load(extra=both, block=["right"]).policy("greedy").owner == "left"


def test_a_misspelt_hook_is_refused() -> None:
    """A hook that does not exist makes its plugin a broken one, with the hook's name."""
    loaded = plugins.load(extra={"typo": plugin(harness_register_polices=lambda register: None)})
    (info,) = [info for info in loaded.found if info.name == "typo"]
    assert info.error is not None
    assert "harness_register_polices" in info.error


def test_a_hook_without_its_decorator_is_refused() -> None:
    """The plugin would load, and bring nothing without a word. Functions with other names are its own."""
    bare = types.SimpleNamespace(harness_register_policies=lambda register: None)
    loaded = plugins.load(extra={"bare": bare, "own": types.SimpleNamespace(harness_mine=len)})
    errors = {info.name: info.error for info in loaded.found if info.name in ("bare", "own")}
    said = "its function harness_register_policies lacks the decorator @harness.hookimpl"
    assert errors == {"bare": said, "own": None}


def test_a_broken_plugin_is_listed_and_not_fatal() -> None:
    """What it registered before it failed is gone, the others work, and asking for it says why it failed."""

    def hook(register: registries.Register[registries.PolicySpec]) -> None:
        register(registries.PolicySpec("half", Greedy, help="registered before the failure"))
        raise RuntimeError("no licence found")

    loaded = plugins.load(extra={"broken": plugin(harness_register_policies=hook)})
    assert "none" in loaded.policies
    assert "half" not in loaded.policies
    with pytest.raises(PluginError, match="plugin 'broken' failed to load: RuntimeError: no licence found"):
        loaded.policy("half")


@pytest.mark.parametrize("error", [SystemExit(), SystemExit("no licence"), BaseException("odd")])
def test_a_plugin_that_ends_the_program_while_it_registers_is_left_out(error: BaseException) -> None:
    """As one that raises any other error; a command would end with exit code 0, and do nothing."""

    def hook(register: registries.Register[registries.PolicySpec]) -> None:
        register(registries.PolicySpec("half", Greedy, help="registered before the failure"))
        raise error

    loaded = plugins.load(extra={"broken": plugin(harness_register_policies=hook)})
    (info,) = (info for info in loaded.found if info.name == "broken")
    assert info.error == f"{type(error).__name__}: {error}"
    assert "none" in loaded.policies
    assert "half" not in loaded.policies


def test_an_interrupt_while_a_plugin_registers_is_one() -> None:
    """Ctrl-C ends the command, and leaves out no plugin."""

    def hook(register: registries.Register[registries.PolicySpec]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plugins.load(extra={"broken": plugin(harness_register_policies=hook)})


def test_plugins_of_another_installation_that_fail_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m harness` imports a checkout's files, with which compiled plugins do not load."""

    def hook(register: registries.Register[registries.PolicySpec]) -> None:
        raise ImportError("No module named 'harness._native__mypyc'")

    assert build.mixed() is None
    loaded = plugins.load(extra={"broken": plugin(harness_register_policies=hook)})
    monkeypatch.setattr(build, "__file__", str(Path("/checkout/harness/base/build.py")))
    with pytest.raises(PluginError, match=r"\nharness is imported from .*, but its plugins are ") as raised:
        loaded.policy("half")
    assert (
        raised.value.hint == "in a checkout, call `harness`, not `python -m harness`, or set PYTHONSAFEPATH=1"
    )
    assert plugins.load().policy("none").name == "none"


def test_an_unknown_policy_says_what_was_probably_meant() -> None:
    """A slip of the finger gets a suggestion."""
    with pytest.raises(PluginError) as unknown:
        plugins.load().policy("nnoe")
    assert unknown.value.hint == "did you mean 'none'?"


def test_a_plugin_named_in_place_of_its_policies_is_told_them() -> None:
    """`--plugin kueue` means one of the two policies that the plugin kueue registers."""
    with pytest.raises(PluginError) as unknown:
        plugins.load().policy("kueue")
    assert unknown.value.hint == "the plugin kueue registers fairsharing and kueue-classic"


def test_all_public_names_are_listed() -> None:
    """`dir(harness)` shows names that are loaded when they are first used, and the version is there."""
    assert {*harness.__all__, "__version__"} <= set(dir(harness))
    assert harness.__version__ == importlib.metadata.version("harness-replay")


def test_leaving_out_an_unknown_plugin_is_an_error() -> None:
    """`--no-plugin` with a wrong name is not ignored."""
    with pytest.raises(PluginError, match="no installed plugin has the name 'nothing'"):
        plugins.load(block=["nothing"])


def test_no_hook_is_called_for_a_job_or_an_event(
    write_trace: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs and two thousand make the same number of hook calls."""
    calls: list[str] = []
    spy = {
        "harness_replay_started": lambda plan: calls.append(plan.label),
        "harness_replay_finished": lambda run: calls.append(run.label),
    }
    loaded = plugins.load()
    counts = []
    for jobs in (2, 2000):
        trace = write_trace(*({"submit_time": number} for number in range(jobs)), name=f"{jobs}.parquet")
        hooks = types.SimpleNamespace(**spy)
        watched = plugins.Plugins(hooks, loaded.policies, loaded.readers, loaded.metrics, loaded.found)  # type: ignore[arg-type]
        harness.replay(trace, plugins=watched, output=tmp_path / "results")
        counts.append(len(calls))
        calls.clear()
    assert counts == [2, 2]


def test_plugins_are_listed_as_text_and_as_json() -> None:
    """The list names origin and version, policies with their options, and readers."""
    text = CliRunner().invoke(cli, ["plugins"])
    assert text.exit_code == 0
    assert "none: nothing is preempted" in text.output
    document = json.loads(CliRunner().invoke(cli, ["plugins", "--json"]).output)
    (none,) = [policy for policy in document["policies"] if policy["name"] == "none"]
    assert [option["name"] for option in none["options"]] == [
        "order",
        "blocking",
        "borrow",
        "percentageOfNodesToScore",
        "gang",
        "devices",
        "deviceSeed",
    ]
