"""The last chapter of an experiment's report, which lists the inputs and how to repeat the experiment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from harness.analysis.report.blocks import Block, Code, Points, Table, Text
from harness.analysis.report.sections.assumed import cluster_lines, trace_lines
from harness.cluster.manifests import dump_yaml
from harness.studies.experiments.experiment import Experiment
from harness.studies.experiments.objectives import value_text

_LISTED = 12
_YAML = (".yaml", ".yml")
_RESULTS = "results"


def basis(experiment: Experiment, command: str | None) -> Iterator[Block]:
    """Yields the factors, the missing items, the inputs, and the commands that repeat the experiment.

    `command` is the command line that made the report. Old experiments have no record of their inputs.
    """
    yield Table(
        "What varies",
        ["factor", "values"],
        [[name, ", ".join(map(value_text, values))] for name, values in experiment.factors.items()],
    )
    yield Points(list(_state(experiment)))
    made = experiment.description.get("made_from", {})
    for one, several, lines in (("Trace", "traces", trace_lines), ("Cluster", "clusters", cluster_lines)):
        for each in made.get(several, ()):
            yield Points(list(lines(each)), title=f"{one} {each.get('source', '')}".rstrip())
    if made:
        yield Points(list(_code(made)), title="Versions")
    else:
        yield Text(
            "An older release of harness made this experiment, and did not record its inputs. "
            "harness sweep SPEC records them."
        )
    for title, sentences in (("Assumed by plugins", "assumed"), ("Warnings", "warnings")):
        if made.get(sentences):
            yield Points(made[sentences], title=title)
    yield from _repeated(experiment, made, command)


def _state(experiment: Experiment) -> Iterator[str]:
    items = experiment.items
    for count, state in items["state"].value_counts().sort("state").select("count", "state").iter_rows():
        yield f"{count:,} items are {state}"
    seeds = experiment.description["seeds"]
    if seeds:
        first, count = seeds.get("first", 1), seeds["count"]
        numbers = f"{first:,} to {first + count - 1:,}" if count > 1 else f"{first:,}"
        yield f"seeds {numbers}: {seeds['of']} {seeds['by']}; values are means over these seeds"
    for number, error in items.filter(state="failed").select("item", "error").head(_LISTED).iter_rows():
        yield f"item {number}: {error.splitlines()[0]}"


def _code(made: Mapping[str, Any]) -> Iterator[str]:
    for each in made["plugins"]:
        yield f"plugin {each['name']} {each['version']}: code sha256 {each['code']}"
    versions = ", ".join(f"{name} {version}" for name, version in made["harness"]["versions"].items())
    yield f"{versions}; code of harness sha256 {made['harness']['code']}"


def _repeated(experiment: Experiment, made: Mapping[str, Any], command: str | None) -> Iterator[Block]:
    lines = []
    if "specification" in made:
        source = made["source"]
        name = source if source.endswith(_YAML) else f"{experiment.name}.yaml"
        folder = experiment.root.parent.as_posix()
        output = "" if folder == _RESULTS else f" -o {shlex.quote(folder)}"
        lines.append(f"harness sweep {shlex.quote(name)}{output}")
        yield Code(dump_yaml([made["specification"]]).rstrip("\n"), folded=f"The specification, {name}")
        yield Text(f"To repeat it, save the specification as {name}, and run:")
    elif command:
        yield Text("To repeat it:")
    if command:
        lines.append(command)
    if lines:
        yield Code("\n".join(lines))
