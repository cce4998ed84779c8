"""Lists the commands that repeat a report, including the commands that made its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.analysis.report.material import Material
from harness.base.options import factor_text
from harness.base.text import printable
from harness.runs.run import Run
from harness.runs.settings import SETTINGS, given_of


def repeat(material: Material) -> Iterator[str]:
    """Yields shell commands or, for runs that were made in Python, the calls that make these runs.

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
    before, cluster = _cluster(info)
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


def _cluster(info: Mapping[str, Any]) -> tuple[list[str], str]:
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
