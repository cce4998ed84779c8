"""What policies are asked beside a replay: their functions fail in their own names."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from policies import Greedy

import harness
from harness import Never, PolicySpec, hookimpl
from harness.base.errors import PluginError
from harness.plugins import Plugins, load
from harness.runs.impossible import verdicts
from harness.testing import pool
from harness.trace.trace import open_trace


def raising(*_: Any) -> Any:
    """Fails."""
    raise ValueError("boom")


def with_policy(**how: Any) -> Plugins:
    """The built-in plugins, and one whose policy `mine` is registered so."""

    def hook(register: Any) -> None:
        register(PolicySpec("mine", Greedy, help="starts what fits", **how))

    plugin = types.SimpleNamespace(harness_register_policies=hookimpl(hook))
    return load(only=["none", "readers", "theirs"], extra={"theirs": plugin})


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"never": raising}, " failed in its function never: ValueError: boom"),
        ({"never": lambda *_: raising}, " failed in its function never: ValueError: boom"),
        ({"never": lambda *_: None}, ": its function 'never' must return a function of a job, not None"),
        (
            {"never": lambda *_: lambda job: "no"},
            ": its function 'never' must return for each job a Never.* type str",
        ),
        (
            {"never": lambda *_: lambda job: Never("a", 5)},
            ": its function 'never' must return for each job a Never",
        ),
        ({"ignored_fields": raising}, " failed in its function ignored_fields: ValueError: boom"),
        (
            {"ignored_fields": lambda *_: "ab"},
            ": its function 'ignored_fields' must return several strings.* type str",
        ),
        (
            {"ignored_fields": lambda *_: None},
            ": its function 'ignored_fields' must return several strings, not None",
        ),
        (
            {"ignored_fields": lambda *_: [5]},
            ": its function 'ignored_fields' must return several strings.* type int",
        ),
        ({"assumes": raising}, " failed in its function assumes: ValueError: boom"),
        ({"assumes": lambda *_: [5]}, ": its function 'assumes' must return several strings.* type int"),
        ({"by_queues": raising}, " failed in its function by_queues: ValueError: boom"),
        ({"by_elastic_quotas": raising}, " failed in its function by_elastic_quotas: ValueError: boom"),
        ({"running": raising}, " failed in its function running: ValueError: boom"),
        (
            {"running": lambda *_: 5},
            " failed in its function running: TypeError: 'int' object is not iterable",
        ),
        (
            {"running": lambda *_: ["a"]},
            ": its function 'running' must return arrivals.* a value of type str",
        ),
    ],
)
def test_a_function_of_a_policy_fails_in_its_name(
    write_trace: Callable[..., Path], tmp_path: Path, how: Any, why: str
) -> None:
    """The error names the policy, its plugin and the function, and says what that answers."""
    with pytest.raises(PluginError, match=f"^policy 'mine' of plugin 'theirs'{why}"):
        harness.replay(write_trace({}), plugin="mine", plugins=with_policy(**how), output=tmp_path)


def test_a_policy_that_cannot_say_what_never_starts_is_left_out_of_what_others_say(
    write_trace: Callable[..., Path],
) -> None:
    """A trace is checked for those who never use that plugin, too."""
    plugins = with_policy(never=raising)
    trace = open_trace(write_trace({"request.cpu": 9000}), plugins)
    cluster = pool(cpu=1000)
    with pytest.warns(
        UserWarning, match="policy 'mine' of plugin 'theirs' failed .* harness does not check which jobs"
    ):
        (verdict,) = verdicts(trace, cluster, plugins)
    assert verdict.plugins == ("none",)


class Unspeakable(Exception):  # noqa: N818 - an error of a plugin
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Silent(Greedy):
    """Fails with an error that has no text."""

    def cycle(self, now: int) -> Any:
        raise Unspeakable
        yield


class Refusing(Greedy):
    """Says itself that something is wrong."""

    def cycle(self, now: int) -> Any:
        raise harness.OptionError("no quota left", hint="give it more")
        yield


def test_an_error_without_a_text_is_told_by_its_type(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """An error's own `__str__` may fail."""
    with pytest.raises(
        harness.PolicyError, match=r"Silent failed at .* Unspeakable: \(its message cannot be shown"
    ):
        harness.replay(write_trace({}), plugin=Silent, output=tmp_path)


def test_an_input_error_of_a_policy_says_which_policy_and_when(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """Its type, its own words and its hint stay."""
    with pytest.raises(harness.OptionError) as raised:
        harness.replay(write_trace({}), plugin=Refusing, output=tmp_path)
    assert raised.value.message.startswith("policy Refusing, at 0 microseconds (")
    assert str(raised.value).endswith(" after the origin): no quota left")
    assert raised.value.hint == "give it more"


def test_a_hook_that_fails_is_named_among_several(write_trace: Callable[..., Path], tmp_path: Path) -> None:
    """The plugin whose function it was, whichever were called before."""

    def first(plan: Any) -> None:
        assert plan.label

    def second(plan: Any) -> None:
        raising(plan)

    hooks = {"a": first, "b": second, "c": lambda plan: None}
    extra = {
        name: types.SimpleNamespace(harness_replay_started=hookimpl(hook)) for name, hook in hooks.items()
    }
    plugins = load(only=["none", "readers", *extra], extra=extra)
    with pytest.raises(
        PluginError, match=r"^plugin 'b' failed in its hook harness_replay_started: ValueError"
    ):
        harness.replay(write_trace({}), plugin="none", plugins=plugins, output=tmp_path)


def test_a_hook_that_reads_tables_that_were_not_kept_is_named(
    write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    """A sweep keeps only metrics. Without the plugin's name, each of its replays would seem to be broken."""

    def finished(run: harness.Run) -> None:
        assert run.jobs.height

    extra = {"counts": types.SimpleNamespace(harness_replay_finished=hookimpl(finished))}
    plugins = load(only=["none", "readers", "metrics", "counts"], extra=extra)
    asked = harness.Request(write_trace({}), plugin="none", output=tmp_path, keep="metrics")
    with pytest.raises(
        PluginError, match="plugin 'counts' failed in its hook harness_replay_finished: run "
    ) as raised:
        asked.run(plugins=plugins)
    assert "has no table of jobs" in raised.value.message
    assert "run.kept" in (raised.value.hint or "")
