"""The section on what a report is based on, such as traces, clusters, settings, conventions and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.analysis.report.blocks import Block, Code, Points, Table, Text
from harness.analysis.report.material import Material
from harness.base.options import factor_text, option_text
from harness.base.text import counted, printable
from harness.base.units import format_amount, format_duration
from harness.runs.run import Run
from harness.runs.settings import SETTINGS, given_of

_CONVENTIONS = (
    "Times are on the clock of the replay. Integrals are exact: they cover every change, not samples.",
    "allocated = useful + lost + idle held + unfinished, to the resource-microsecond.",
    "Jobs name a queue and count against a quota (ClusterQueue, ElasticQuota) if there is one.",
    "A share is a dominant share: the largest fraction of any resource's capacity that a queue holds.",
    "Ideal shares are weighted max-min fair over all resources.",
    "A wait is from submission to first progress. Percentiles interpolate linearly between order statistics.",
    "If a job had not started or finished when a replay ended, its time so far is used and marked ≥.",
    "Hours waited are `mean wait * number of jobs`. Other charts of waits show only ended waits.",
    "If a job loses several pods to another job at one time, this counts as one preemption.",
    "If all runs have equal arrivals, utilization, fairness and quota cover a window that all runs share.",
)


def blocks(material: Material) -> Iterator[Block]:
    """Yields the traces, clusters, settings and conventions on which the report is based."""
    for what, tell in (("Trace", trace_lines), ("Cluster", cluster_lines)):
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, run in zip(material.names, material.runs, strict=True):
            alike.setdefault(tuple(tell(run.info[what.lower()])), []).append(name)
        for told, names in alike.items():
            yield Points(list(told), title=what if len(alike) == 1 else f"{what} of {', '.join(names)}")
    yield Table(
        caption="Settings of the runs",
        head=["setting", *material.names],
        rows=[[name, *values] for name, values in _settings(material)],
    )
    assumed = dict.fromkeys(
        sentence for run in material.runs for sentence in run.info["policy"].get("assumed", [])
    )
    if assumed:
        yield Points(list(assumed), title="Assumed by plugins")
    warnings = dict.fromkeys(
        warning for run in material.runs for warning in run.info["cluster"].get("warnings", [])
    )
    if warnings:
        yield Points(list(warnings), title="Warnings")
    yield Points(_CONVENTIONS, title="Conventions")
    yield Text("To repeat this report:")
    yield Code("\n".join(repeat(material)))


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Yields lines about a trace, given its entry in `run.json`."""
    yield f"{trace['name']}, {trace['jobs']:,} jobs, sha256 {trace['sha256']}"
    for reason, count in trace.get("left_out", {}).items():
        yield f"left out: {count:,} rows: {reason}"
    yield from trace.get("notes", [])
    for key, value in trace.get("metadata", {}).items():
        yield f"{key.removeprefix('harness.')}: {value}"


def cluster_lines(cluster: Mapping[str, Any]) -> Iterator[str]:
    """Yields lines about a cluster, given its entry in `run.json`."""
    amounts = ", ".join(
        f"{format_amount(resource, amount)} {resource}" for resource, amount in cluster["capacity"].items()
    )
    nodes = counted(cluster["nodes"], "node") if cluster["nodes"] else "no nodes: a pool"
    quotas = f"; {len(cluster['queues']):,} quotas" if cluster["queues"] else "; no quotas"
    yield f"{nodes}; {amounts or 'no capacity'}{quotas}; sha256 {cluster['sha256']}"
    for sentence in cluster.get("assumed", []):
        yield f"assumed: {sentence}"


def _settings(material: Material) -> Iterator[tuple[str, list[str]]]:
    infos = [run.info for run in material.runs]
    policies = [info["policy"] for info in infos]
    yield "plugin", [f"{each['name']} {each.get('version', '')}".rstrip() for each in policies]
    if any(each.get("record") for each in policies):
        yield "is a record of what happened", ["yes" if each.get("record") else "no" for each in policies]
    if any(each.get("clairvoyant") for each in policies):
        yield "sees how long jobs run", ["yes" if each.get("clairvoyant") else "no" for each in policies]
    for option in dict.fromkeys(key for each in policies for key in each["options"]):
        yield (f"option {option}", [_option(each, option) for each in policies])
    settings = [info["settings"] for info in infos]
    yield "a preempted job loses", [_loss(each["on_preemption"]) for each in settings]
    yield "grace period", [format_duration(each["grace_period_us"]) for each in settings]
    if any(each.get("startup_us") for each in settings):
        yield "time until pods are ready", [format_duration(each.get("startup_us", 0)) for each in settings]
    yield "arrivals", [f"× {factor_text(each['scale_arrivals'])}" for each in settings]
    if any(each.get("at_start") for each in settings):
        yield "objects at the start", [each.get("at_start") or "–" for each in settings]
    if any(each.get("unfinished") for each in settings):
        yield "run times of unfinished objects", [_run_times(each) for each in settings]
    if any(each.get("calibration") for each in settings):
        yield "changes to the trace", [_calibrated(each.get("calibration", {})) for each in settings]
    yield (
        "stopped after",
        ["–" if each.get("until_us") is None else format_duration(each["until_us"]) for each in settings],
    )
    yield "window", [format_duration(run.window.end - run.window.start) for run in material.runs]


def _run_times(settings: Mapping[str, Any]) -> str:
    seed = f", seed {settings['seed']}" if "seed" in settings else ""
    return f"{settings.get('unfinished', '–')}{seed}"


def _calibrated(changed: Mapping[str, str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_step(name, text)}" for name, text in changed.items()) or "–"


def _step(name: str, text: str) -> str:
    return factor_text(text) if name == "scale_cluster" else text


def _loss(model: str) -> str:
    return {"restart": "all (restart)", "resume": "nothing (resume)"}.get(model, model)


def _option(policy: Mapping[str, Any], name: str) -> str:
    return option_text(policy["options"].get(name), duration=name in policy.get("durations", ()), nothing="–")


def repeat(material: Material) -> Iterator[str]:
    """Yields the shell commands that make the runs. For runs made in Python, yields Python calls instead.

    All lines are printable, because names may contain characters that would affect a terminal.
    """
    lines: dict[str, None] = {}
    for run in material.runs:
        command = run.info["provenance"].get("command")
        lines |= dict.fromkeys([command] if command else _calls(run))
    yield from map(printable, lines)
    if material.command:
        yield printable(material.command)


def _calls(run: Run) -> Iterator[str]:
    """Yields the call of `harness.replay` that makes a run, after the lines that the call needs.

    A policy class has no file, and neither does a cluster that was changed in memory. The call then uses a
    name, and a comment explains the name.
    """
    info = run.info
    provenance, policy, settings = info["provenance"], info["policy"], info["settings"]
    arguments = {"plugin": repr(policy["name"])}
    if not policy["plugin"]:
        yield f"# {policy['name']} is a policy class that was passed in Python"
        arguments["plugin"] = policy["name"]
    before, cluster = _cluster_argument(info)
    yield from before
    if cluster:
        arguments["cluster"] = cluster
    chosen: dict[str, Any] = {"options": policy["options"], "label": run.label}
    chosen |= {name: value for name, value in given_of(settings).items() if SETTINGS[name].differs(value)}
    if "scale_arrivals" in chosen:
        chosen["scale_arrivals"] = factor_text(chosen["scale_arrivals"])
    chosen |= {name: settings[name] for name in ("twin", "alone") if name in settings}
    arguments |= {name: repr(value) for name, value in chosen.items()}
    if "calibration" in settings:
        yield "from harness.trace.calibration import Calibration"
        steps = ", ".join(f"{step}={text!r}" for step, text in settings["calibration"].items())
        arguments["calibration"] = f"Calibration.parse({steps})"
    asked = ", ".join(
        (repr(provenance.get("trace", info["trace"]["name"])), *map("=".join, arguments.items()))
    )
    yield f"harness.Request({asked}).run()" if "alone" in settings else f"harness.replay({asked})"


def _cluster_argument(info: Mapping[str, Any]) -> tuple[list[str], str]:
    """Returns the lines before the call, and the call's argument for the cluster.

    The argument is "" if the call needs none.
    """
    source, files = info["provenance"].get("cluster"), info["provenance"].get("cluster_files")
    if not source or (info["cluster"].get("assumed") and files in (None, [], [""])):
        return [], ""
    if files is None:  # older runs do not record these files
        return [], repr(source)
    if not files or not files[0]:
        return [f"# cluster was made in memory: {source}"], "cluster"
    manifests, *patches = files
    if not patches:
        return [], repr(manifests)
    made = "".join((f"load_cluster({manifests!r})", *(f".patched({patch!r})" for patch in patches)))
    return ["from harness.cluster.load import load_cluster"], made
