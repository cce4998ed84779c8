"""How to repeat a report: the commands that made the runs, and the one that made the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.options import factor_text
from harness.report.material import Material
from harness.runs.run import Run
from harness.text import printable


def repeat(material: Material) -> Iterator[str]:
    """Lines for a shell; for runs made in Python, the calls that make them.

    A line is printable: what a trace's name could do to a terminal is taken out of it.
    """
    commands = dict.fromkeys(run.info["provenance"].get("command") or _call(run) for run in material.runs)
    yield from map(printable, commands)
    if material.command:
        yield printable(material.command)


def _call(run: Run) -> str:
    """The call of `harness.replay` that makes a run."""
    info = run.info
    provenance, policy, settings = info["provenance"], info["policy"], info["settings"]
    arguments: dict[str, Any] = {"plugin": policy["name"]}
    if provenance.get("cluster") and not info["cluster"].get("assumed"):
        arguments["cluster"] = provenance["cluster"]
    arguments |= {"options": policy["options"], "label": run.label}
    arguments |= {"on_preemption": settings["on_preemption"], "grace_period": settings["grace_period_us"]}
    if settings.get("startup_us"):
        arguments["startup"] = settings["startup_us"]
    if settings.get("until_us") is not None:
        arguments["until"] = settings["until_us"]
    if settings["scale_arrivals"] != "1":
        arguments["scale_arrivals"] = factor_text(settings["scale_arrivals"])
    if "at_start" in settings:
        arguments["at_start"] = settings["at_start"]
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"harness.replay({provenance.get('trace', info['trace']['name'])!r}, {text})"
