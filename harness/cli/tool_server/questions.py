"""Answers the questions of tools, with text for people and JSON values for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness.base.errors import InputError, OptionError
from harness.cli.tool_server.folders import Folders
from harness.cluster.load import load_cluster
from harness.plugins import Plugins, load

_MOST_FUTURES = 200
_MOST_RUNS = 1000
_LARGEST_DOCUMENT = 1 << 20


Manifest = dict[str, Any]


class Reply(NamedTuple):
    """The answer of a tool."""

    text: str
    document: dict[str, Any]


def simulate(
    folders: Folders,
    cluster: str,
    jobs: list[Manifest] | None = None,
    patch: list[Manifest] | None = None,
    plugin: str | None = None,
    workloads: list[str] | None = None,
    each: bool = False,
    changes: bool = True,
) -> Reply:
    """Say whether jobs would start now in a cluster's dump, what they would preempt, and what would help.

    Without jobs, the tool answers for the named waiting workloads, or for all waiting workloads. Jobs and
    patch documents are manifests.
    """
    from harness.studies.simulation.asking import Question
    from harness.studies.simulation.text import text

    there = load_cluster(folders.cluster(cluster))
    there = there.patched(patch) if patch else there
    question = Question(_library(), there, plugin)
    looks = changes and bool(jobs or workloads)
    found = question.answered(jobs or (), workloads=workloads or (), each=each, changes=looks)
    return Reply(text(found), found.to_json())


def forecast(
    folders: Folders,
    cluster: str,
    history: str | None = None,
    job: Manifest | None = None,
    plugin: str | None = None,
    futures: int = 20,
    horizon: str = "7d",
) -> Reply:
    """Forecast when waiting jobs in a cluster's dump start, and the effect of one more job."""
    from harness import api
    from harness.studies.forecasting.text import text

    if not 0 < futures <= _MOST_FUTURES:
        raise OptionError(f"futures: {futures} is not a number from 1 to {_MOST_FUTURES}")
    found = api.forecast(
        folders.cluster(cluster),
        history=None if history is None else folders.path(history),
        submit=job,
        plugin=plugin,
        futures=futures,
        horizon=horizon,
        workers=1,
        plugins=_library(),
    )
    return Reply(text(found), found.to_json())


def what_if(
    folders: Folders,
    trace: str,
    patch: list[Manifest],
    cluster: str | None = None,
    plugin: str | None = None,
    until: str | None = None,
) -> Reply:
    """Replay a trace on a cluster and on the patched one, and compare waits, use and preemptions."""
    from harness import api
    from harness.runs.inputs import cluster_for, read_trace

    if not patch:
        raise OptionError("patch: contains no document, so nothing would change")
    read = read_trace(folders.trace(trace), _library(metrics=True))
    base = cluster_for(None if cluster is None else folders.cluster(cluster), read)
    worlds = {"base": base, "patched": base.patched(patch)}
    # A comparison reads the tables of its runs, so the folder must exist until the comparison is finished.
    with TemporaryDirectory() as kept:
        runs = [
            api.replay(
                read, cluster=there, plugin=plugin, until=until, label=name, output=kept,
                plugins=_library(metrics=True),
            )
            for name, there in worlds.items()
        ]  # fmt: skip
        found = api.compare(runs, baseline="base")
        return Reply(str(found), found.to_json(changes=False))


def explain(
    folders: Folders, run: str, job: str | None = None, queue: str | None = None, at: str | None = None
) -> Reply:
    """Explain what happened to a job of a finished run, in a queue, or at a given time."""
    from harness.analysis.explanation.explain import explain as told

    found = told(folders.path(run), job, queue=queue, at=at)
    return Reply(found.text(), json.loads(json.dumps(found.to_json(), default=str)))


def compare(folders: Folders, runs: list[str], baseline: str | None = None) -> Reply:
    """Compare finished runs of the same jobs; the first one is the baseline."""
    from harness import api

    found = api.compare([folders.path(run) for run in runs], baseline=baseline)
    return Reply(str(found), found.to_json(changes=False))


def list_runs(folders: Folders, folder: str = ".") -> Reply:
    """List the finished runs below a folder."""
    paths = (path for path in _runs(folders.place(folder)) if folders.holds(path))
    found = [each for each in map(_about, paths) if each is not None]
    lines = [f"{each['folder']}: {each['label']} of {each['trace']}, by {each['plugin']}" for each in found]
    return Reply("\n".join(lines) or "there is no run", {"schema": "1", "runs": found})


def _runs(root: Path) -> Iterator[Path]:
    for number, path in enumerate(sorted(root.rglob("run.json"))):
        if number == _MOST_RUNS:
            raise InputError(f"there are more than {_MOST_RUNS:,} runs", hint="name a folder with fewer runs")
        yield path


def _about(path: Path) -> dict[str, str] | None:
    try:
        if path.stat().st_size > _LARGEST_DOCUMENT:
            return None
        info = json.loads(path.read_bytes())
        return {
            "folder": str(path.parent),
            "label": str(info["label"]),
            "trace": str(info["trace"]["name"]),
            "plugin": str(info["policy"]["name"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _library(*, metrics: bool = False) -> Plugins:
    return load() if metrics else load(block=["metrics"])


_ANSWERS: Sequence[Callable[..., Reply]] = (simulate, forecast, what_if, explain, compare, list_runs)

TOOLS: Mapping[str, Callable[..., Reply]] = {each.__name__: each for each in _ANSWERS}
"""Maps the name of a tool to the function that answers.

The server offers each function as a tool, with its docstring and with its parameters except for the folders.
A function reads files only below the folders, and raises an InputError if the question is invalid.
"""
