"""`harness plugins`: what is installed, what it brings, and what is broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

GOOD = """
    import harness
    from harness.base.units import parse_duration

    class Idle:
        def __init__(self, cluster, view, options): pass
        def submit(self, job, pods, now): pass
        def release(self, job, pods, now, why): pass
        def cycle(self, now): return iter(())

    @harness.hookimpl
    def harness_register_policies(register):
        options = [
            harness.Option("wait", 90_000_000, "how long " + "very " * 30 + "long", type=parse_duration),
            harness.Option("strict", False, "whether", type=harness.boolean),
        ]
        register(harness.PolicySpec("idle", Idle, help="starts nothing", options=options, clairvoyant=True))
"""


def test_the_list_fits_100_columns(harness: Callable, install: Callable) -> None:
    """A table of plugins, then what they register with every option as one writes it."""
    install("sleepy", GOOD)
    out = harness("plugins").out
    assert max(map(len, out.split("\n"))) <= 100
    head, line, *_ = out.split("\n")
    assert head.split() == ["plugin", "from", "version", "brings"]
    assert set(line) == {"─", " "}
    assert re.search(r"\nsleepy +sleepy +1\.0 +policy idle\n", out)
    assert (
        "\n  idle: starts nothing [clairvoyant: sees how long jobs run]\n    wait=1m30s: how long very" in out
    )
    assert "\n    strict=false: whether\n" in out
    for kind in ("policies", "readers", "metrics", "components"):
        assert f"\n\n{kind} (" in out


def test_json_holds_every_plugin_and_option(harness: Callable, install: Callable) -> None:
    """For programs: one document, exact defaults."""
    install("sleepy", GOOD)
    document = json.loads(harness("plugins", "--json").out)
    (policy,) = [each for each in document["policies"] if each["name"] == "idle"]
    assert policy["plugin"] == "sleepy"
    assert policy["clairvoyant"] is True
    assert [(each["name"], each["default"]) for each in policy["options"]] == [
        ("wait", 90_000_000),
        ("strict", False),
    ]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import absent_module", "ModuleNotFoundError: No module named 'absent_module'"),
        ("this is no Python", "SyntaxError"),
        (
            "import harness\n@harness.hookimpl\ndef harness_register_polices(register): pass",
            "harness_register_polices",
        ),
        (
            "import harness\n@harness.hookimpl\ndef harness_register_policies(register, cli): pass",
            "Argument(s) {'cli'} are declared in the hookimpl but can not be found in the hookspec",
        ),
    ],
)
def test_a_broken_plugin_is_listed_and_harms_nobody(
    source: str, reason: str, harness: Callable, install: Callable
) -> None:
    """One line says why; everything else works, help too."""
    install("broken_one", source)
    ended = harness("plugins")
    assert ended.code == 0
    joined = " ".join(ended.out.split())
    assert "broken: " in joined
    assert reason in joined
    assert harness("--help").code == 0
    assert "broken_one" not in harness("--no-plugin", "broken_one", "plugins").out


def test_plugins_that_clash_are_both_named_and_help_still_works(harness: Callable, install: Callable) -> None:
    """Two policies or two commands of one name; leaving one out is the way on."""
    command = """
        import harness

        @harness.hookimpl
        def harness_register_commands(cli):
            @cli.command()
            def hello():
                pass
        """
    install("hello_a", command)
    install("hello_b", command)
    ended = harness("hello")
    assert ended.code == 2
    assert ended.err.startswith("Error: command 'hello' is registered by both 'hello_a' and 'hello_b'\n")
    assert "Hint: leave one out: --no-plugin hello_b" in ended.err
    helped = harness("--help")
    assert helped.code == 0
    clash = (
        "command 'hello' is registered by both 'hello_a' and 'hello_b'; leave one out: --no-plugin hello_b."
    )
    assert f"Commands of plugins are missing: {clash}" in " ".join(helped.out.split())
    assert harness("--no-plugin", "hello_b", "hello").code == 0
    install("replays", command.replace("hello", "replay"))
    assert "registered by both 'harness' and 'replays'" in harness("--no-plugin", "hello_b", "hello").err
    assert harness("replay", "--help").code == 0


def test_a_plugin_that_fails_to_add_commands_is_named(harness: Callable, install: Callable) -> None:
    """Only those who ask for a command that is not ours hear of it."""
    install(
        "cannot_add",
        """
        import harness

        @harness.hookimpl
        def harness_register_commands(cli):
            raise RuntimeError("not now")
        """,
    )
    ended = harness("hello")
    assert ended.code == 2
    assert ended.err.startswith(
        "Error: plugin 'cannot_add' failed to add its commands: RuntimeError: not now\n"
    )
    assert harness("plugins").code == 0
    assert harness("--help").code == 0


def test_what_a_release_of_kueue_decides_differently_is_told_with_links(harness: Callable) -> None:
    """In sentences, with the gates that only one of both releases has, and how to replay it."""
    told = harness("plugins", "--kueue-version", "v0.15")
    assert told.code == 0
    assert told.out.startswith("Kueue v0.15.8 decides differently from ff69552")
    assert (
        "- The two values of flavorFungibility.preference are swapped, so each has the meaning of the other."
        in told.out
    )
    assert "  https://github.com/kubernetes-sigs/kueue/pull/9464" in told.out
    assert "To replay it: --set kueueVersion=v0.15.8" in told.out
    assert max(map(len, told.out.split("\n"))) <= 100
    document = json.loads(harness("plugins", "--kueue-version", "v0.19", "--json").out)
    assert [each["link"].rpartition("/")[2] for each in document["differences"]] == ["13642", "13863"]
    newest = harness("plugins", "--kueue-version", "ff69552").out
    assert newest == "Kueue ff69552 decides like ff69552, the newest recorded release.\n"


def test_a_release_of_kueue_that_is_not_known_is_refused(harness: Callable) -> None:
    """With those that are."""
    refused = harness("plugins", "--kueue-version", "v0.12")
    assert refused.code == 2
    assert "'v0.12' is not a known release" in refused.err


def test_hooks_that_register_no_name_are_listed(harness: Callable, install: Callable) -> None:
    """A plugin that adds a command and hears of replays brings something."""
    install(
        "helps",
        """
        import harness

        @harness.hookimpl
        def harness_register_commands(cli): pass

        @harness.hookimpl
        def harness_replay_finished(run): pass
        """,
    )
    listed = " ".join(harness("plugins").out.split())
    assert "helps 1.0 hook harness_register_commands, harness_replay_finished" in listed
