"""What plugins may register: a fault is that of its plugin alone, which counts as not loaded."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from policies import Greedy

import harness
from harness import MetricSpec, Option, PolicySpec, ReaderSpec, hookimpl, plugins
from harness.analysis.report import SectionSpec
from harness.base.errors import PluginError
from harness.cli import cli, context
from harness.models.manifests import Kind, KindSpec
from harness.plugins.conformance import ConformanceSpec
from harness.plugins.hookspecs import late

TWICE = (Option("x", 1, "first", type=int), Option("x", 2, "second", type=int))
SEEDED = (Option("seed", 0, "h", type=int),)


SPECS: dict[str, Any] = {
    "policies": PolicySpec,
    "readers": ReaderSpec,
    "metrics": MetricSpec,
    "sections": SectionSpec,
    "conformance": ConformanceSpec,
    "kinds": lambda name, *what, **how: KindSpec(name, Kind(*what, **how)),
}


def bringing(kind: str, *what: Any, **how: Any) -> types.SimpleNamespace:
    """A plugin that registers one thing of a kind after a good policy."""

    def good(register: Any) -> None:
        register(PolicySpec("good", Greedy, help="starts what fits"))

    def hook(register: Any) -> None:
        if kind == "policies":
            good(register)
        register(SPECS[kind](*what, **how))

    hooks: dict[str, Callable[[Any], None]] = {"policies": good, kind: hook}
    return types.SimpleNamespace(
        **{f"harness_register_{name}": hookimpl(each) for name, each in hooks.items()}
    )


def error_of(plugin: object) -> str:
    """Why a plugin did not load; what it registered before is gone, and others are there."""
    loaded = plugins.load(extra={"bad": plugin})
    (info,) = (each for each in loaded.found if each.name == "bad")
    assert "none" in loaded.policies
    assert not [spec for registry in loaded.registries for spec in registry if spec.owner == "bad"]
    assert not [
        each for each in loaded.hooks.harness_register_policies.get_hookimpls() if each.plugin is plugin
    ]
    return info.error or ""


@pytest.mark.parametrize("name", [5, None, "", "../x", "a@b", "a b", "a/b", "x" * 41, "-p"])
@pytest.mark.parametrize("kind", ["policies", "readers", "metrics", "sections"])
def test_names_can_be_called_on_command_lines_and_in_folders(kind: str, name: object) -> None:
    """`-p NAME@LABEL` and a run's folder can have every name; another one names its plugin and the rule."""
    titled = {"title": "t"} if kind == "sections" else {}
    error = error_of(bringing(kind, name, Greedy, help="h", **titled))
    assert error.startswith("plugin 'bad' registers ")
    assert f"{name!r}: a name is made of up to 40 letters, digits and the characters - _ . +" in error


@pytest.mark.parametrize(
    ("kind", "what", "how", "why"),
    [
        ("policies", ("p", Greedy), {"help": None}, "help must be a string, but is None"),
        ("policies", ("p", 5), {"help": "h"}, "factory must be a function, but is of type int"),
        ("policies", ("p", Greedy), {"help": "h", "never": 5}, "never must be a function"),
        ("policies", ("p", Greedy), {"help": "h", "running": []}, "running must be a function"),
        ("policies", ("p", Greedy), {"help": "h", "by_elastic_quotas": True}, "quotas must be a function"),
        ("policies", ("p", Greedy), {"help": "h", "ignored_fields": ""}, "ignored_fields must be a function"),
        ("policies", ("p", Greedy), {"help": "h", "assumes": "a"}, "assumes must be a function"),
        ("policies", ("p", Greedy), {"help": "h", "clairvoyant": "no"}, "clairvoyant must be True or False"),
        ("policies", ("p", Greedy), {"help": "h", "options": TWICE}, "two options have the name 'x'"),
        ("policies", ("p", Greedy), {"help": "h", "options": TWICE[0]}, "but is a single Option"),
        (
            "policies",
            ("p", Greedy),
            {"help": "h", "options": [TWICE[0], "zz"]},
            "'zz' in it is not an Option",
        ),
        ("policies", ("p", Greedy), {"help": "h", "options": {"a": 1}}, "but is of type dict"),
        (
            "policies",
            ("p", Greedy),
            {"help": "h", "options": SEEDED},
            "an option cannot have the name 'seed'",
        ),
        ("policies", ("good", Greedy), {"help": "h"}, "registers policy 'good' twice"),
        ("readers", ("r", None), {"help": "h"}, "read must be a function, but is None"),
        ("readers", ("r", open), {"help": "h", "suffixes": ".x"}, "suffixes must be several strings"),
        ("readers", ("r", open), {"help": "h", "suffixes": [""]}, "suffixes must be non-empty strings"),
        ("readers", ("r", open), {"help": "h", "sniff": True}, "sniff must be a function"),
        ("readers", ("r", open), {"help": "h", "options": 5}, "but is of type int"),
        ("metrics", ("m", 5), {"help": "h"}, "compute must be a function"),
        ("metrics", ("m", len), {"help": b"h"}, "help must be a string, but is of type bytes"),
        ("sections", ("s", len), {"title": 5, "help": "h"}, "title must be a string"),
        ("sections", ("s", len), {"title": "t", "help": "h", "place": "9"}, "'place' must be a whole number"),
        ("conformance", ("a/../b", len), {"help": "h"}, "several names separated by /"),
        ("conformance", ("c", len), {"help": "h", "informative": "x"}, "informative must be several strings"),
        (
            "kinds",
            ("K k.g",),
            {"versions": ["v1"], "read": len, "coverage": None},
            "group and kind must be words",
        ),
        ("kinds", ("K.g",), {"versions": "v1", "read": len, "coverage": None}, "versions must be several"),
        ("kinds", ("K.g",), {"versions": ["v1"], "read": len, "coverage": None}, "must be a Coverage"),
    ],
)
def test_what_is_registered_is_of_the_right_types(kind: str, what: Any, how: Any, why: str) -> None:
    """Functions, texts, flags and options; each fault names the plugin, and what is wrong."""
    error = error_of(bringing(kind, *what, **how))
    assert error.startswith("plugin 'bad' registers ")
    assert why in error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((MetricSpec("m", lambda run, window: [], help="h"),), "but the given value is of type MetricSpec"),
        (("p", Greedy), "but 2 values are given"),
        ((None,), "but the given value is None"),
    ],
)
def test_a_hook_registers_one_specification_at_a_time(given: tuple[Any, ...], said: str) -> None:
    """The message names the plugin, and no class of harness that the author does not know."""

    @hookimpl
    def hook(register: Any) -> None:
        register(*given)

    loaded = plugins.load(extra={"theirs": types.SimpleNamespace(harness_register_policies=hook)})
    (error,) = [info.error for info in loaded.found if info.name == "theirs"]
    assert error is not None
    assert error.startswith("plugin 'theirs' registers policy")
    assert error.endswith(f"register takes one PolicySpec, {said}")


def test_components_of_conformance_have_paths_for_names() -> None:
    """Such as those that are there: `kueue/cycles`."""
    loaded = plugins.load(extra={"good": bringing("conformance", "mine/cycles", dict, help="answers")})
    assert loaded.conformance.get("mine/cycles") is not None


def test_a_bad_registration_leaves_all_others_listed_and_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    """`harness plugins` lists the plugin with the reason, and a mistyped policy gets its suggestion."""
    loaded = plugins.load(extra={"bad": bringing("policies", 5, Greedy, help=None)})
    with pytest.raises(
        PluginError, match="plugin 'bad' failed to load: plugin 'bad' registers policy 5"
    ) as raised:
        loaded.policy("nonee")
    assert raised.value.hint == "did you mean 'none'?"
    monkeypatch.setattr(context, "load", lambda **_: loaded)
    listed = CliRunner().invoke(cli, ["plugins"])
    assert listed.exit_code == 0
    assert "broken: plugin 'bad' registers policy 5" in listed.output
    assert "none: nothing is preempted" in listed.output


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Option("x", 1, "h", type=int), "options must be a tuple of Option, but is a single Option"),
        ({"a": 1}, "options must be a tuple of Option, but is of type dict"),
        (("a",), "options must be a tuple of Option, but 'a' in it is not an Option"),
        (5, "options must be a tuple of Option, but is of type int"),
        (TWICE, "two options have the name 'x'"),
        (SEEDED, "an option cannot have the name 'seed'"),
    ],
)
def test_options_of_a_policy_class_are_a_tuple_of_options(
    write_trace: Callable[..., Path], tmp_path: Path, options: Any, why: str
) -> None:
    """Anything else is refused with the name of the class."""

    class Mine(Greedy):
        pass

    Mine.options = options  # type: ignore[attr-defined]
    with pytest.raises(harness.OptionError, match=f"policy Mine: {why}"):
        harness.replay(write_trace({}), plugin=Mine, output=tmp_path)


def test_a_late_function_imports_its_module_when_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "later_on.py").write_text("def add(one, *, other):\n    return one + other\n")
    monkeypatch.syspath_prepend(tmp_path)
    add = late("later_on:add")
    assert "later_on" not in sys.modules
    assert (add.__module__, add.__qualname__) == ("later_on", "add")  # its code counts, not that of `late`
    assert add(1, other=2) == 3
    monkeypatch.delitem(sys.modules, "later_on")


@pytest.mark.parametrize("place", ["later_on", "later_on:", ":add"])
def test_a_late_function_has_a_module_and_a_name(place: str) -> None:
    """Otherwise a user would learn of it only when the plugin is used."""
    with pytest.raises(PluginError, match="names no function"):
        late(place)
