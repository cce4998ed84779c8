"""Lists the differences between two runs in their plugins, options, settings, traces and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.comparison.clusters import cluster_distinctions
from harness.analysis.comparison.distinction import EVENTS, OPTION, PLUGIN, SETTING, TRACE, Distinction
from harness.analysis.comparison.pairs import trace_text
from harness.base.options import factor_text, option_text
from harness.base.units import exact_duration
from harness.runs.epochs import summary
from harness.runs.run import Run
from harness.runs.settings import SETTINGS

_NONE = "none"
_SHORT = 12
_FACTORS = ("scale_arrivals", "scale_cluster")
_USUAL = {"scale_cluster": "1"}


def distinctions(base: Run, run: Run, runs: Sequence[Run]) -> list[Distinction]:
    """Lists a run's differences from the baseline.

    `runs` contains all compared runs. If the baseline's plugin lacks an option, this option is listed only if
    its value differs between runs of the same plugin.
    """
    ours, theirs = base.info, run.info
    same_plugin = [
        each.info["policy"]["options"]
        for each in runs
        if each.info["policy"]["name"] == theirs["policy"]["name"]
    ]
    return [
        *_plugin(ours["policy"], theirs["policy"]),
        *_options(ours["policy"], theirs["policy"], same_plugin),
        *_settings(ours["settings"], theirs["settings"]),
        *_trace(base, run),
        *_events(ours["cluster"], theirs["cluster"]),
        *cluster_distinctions(ours["cluster"], theirs["cluster"]),
    ]


def _plugin(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Distinction]:
    if base["name"] != other["name"]:
        yield Distinction(PLUGIN, "", "", base["name"], other["name"])
    elif base.get("version") != other.get("version"):
        versions = [each.get("version") or _NONE for each in (base, other)]
        yield Distinction(PLUGIN, base["name"], "version", *versions)
    elif "code" in base and "code" in other and base["code"] != other["code"]:
        sums = [each["code"]["sha256"][:_SHORT] for each in (base, other)]
        yield Distinction(PLUGIN, base["name"], "code", *sums)


def _options(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], same_plugin: Sequence[Mapping[str, Any]]
) -> Iterator[Distinction]:
    """Yields the options that differ between the two runs, or among the runs of this plugin."""
    base, other = ours["options"], theirs["options"]
    for name, value in other.items():
        text = _option(theirs, name)
        if name in base and base[name] != value:
            yield Distinction(OPTION, name, "", _option(ours, name), text)
        elif name not in base and any(options.get(name) != value for options in same_plugin):
            yield Distinction(OPTION, name, "", None, text)


def _option(policy: Mapping[str, Any], name: str) -> str:
    return option_text(policy["options"][name], duration=name in policy.get("durations", ()), nothing=_NONE)


def _settings(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Distinction]:
    for key in (setting.key for setting in SETTINGS.values()):
        drawn = key != "seed" or (key in base and key in other)
        if drawn and base.get(key) != other.get(key):
            values = [_setting(key, each.get(key)) for each in (base, other)]
            yield Distinction(SETTING, _called(key), "", *values)
    changes = [each.get("calibration", {}) for each in (base, other)]
    for step in dict.fromkeys((*changes[0], *changes[1])):
        values = [_setting(step, each.get(step, _USUAL.get(step))) for each in changes]
        if values[0] != values[1]:
            yield Distinction(SETTING, _called(step), "", *values)


def _trace(base: Run, run: Run) -> Iterator[Distinction]:
    if base.info["trace"]["sha256"] != run.info["trace"]["sha256"]:
        yield Distinction(TRACE, "", "", trace_text(base), trace_text(run))


def _events(base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Distinction]:
    found = [each.get("events", []) for each in (base, other)]
    if found[0] != found[1]:
        yield Distinction(EVENTS, "", "", *(summary(each) or None for each in found))


def _called(key: str) -> str:
    return f"--{key.removesuffix('_us').replace('_', '-')}"


def _setting(key: str, value: Any) -> str:
    if value is None:
        return _NONE
    if key in _FACTORS:
        return factor_text(value)
    return exact_duration(value) if key.endswith("_us") else str(value)
