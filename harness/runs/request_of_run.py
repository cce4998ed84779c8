"""Finds the original request of a finished run, or derives an equal one from the run's record."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import InputError, RunError
from harness.base.files.standard_input import STANDARD_INPUT
from harness.cluster.model import Cluster
from harness.cluster.yaml.sources import sources
from harness.plugins import Plugins
from harness.runs.inputs import cluster_for, read_trace
from harness.runs.request import Request
from harness.runs.run import Run
from harness.runs.settings import given_of
from harness.trace.calibration import Calibration


def request_of(run: Run, plugins: Plugins, *, has: str = "", option: str = "--isolated") -> Request:
    """Returns the original request of a run, or one that is derived from the run's record.

    `has` is the beginning of an error's message, which says what is missing in the run, such as `has no
    twins, and `. `option` is the option of `harness replay` that creates a run with the missing part.

    Raises:
        RunError: the same request would now result in another run or in no run. The message says why.
    """
    if (quota := run.info["settings"].get("alone")) is not None:
        raise RunError(
            f"{run.path} replays only quota {quota!r}, so it has no twins and no other quotas",
            hint="give the run that replays all quotas",
        )
    try:
        request = run.request or _told(run, plugins)
        found = request.plan(plugins).run_name
    except InputError as error:
        raise RunError(
            f"{run.path} {has}cannot be replayed: {error.message}", hint=_replaying(run, option)
        ) from error
    if found != run.info["run"]:
        why = "the code, the trace, the manifests or their patches have changed"
        raise RunError(f"{run.path} {has}cannot be replayed: {why}", hint=_replaying(run, option))
    return request


def _told(run: Run, plugins: Plugins) -> Request:
    """Returns the request that the record of a run describes."""
    info, settings = run.info, run.info["settings"]
    calibration = Calibration.parse(**settings.get("calibration", {}))
    return Request(
        info["provenance"]["trace"],
        plugin=info["policy"]["name"],
        cluster=_cluster(info, plugins, calibration),
        options=info["policy"]["options"],
        label=info["label"],
        calibration=calibration,
        output=run.path.parent.parent,
        **given_of(settings),
    )


def _cluster(info: Mapping[str, Any], plugins: Plugins, calibration: Calibration) -> Cluster | Path | None:
    """Returns the cluster of a run before it was scaled, or None if it was derived from the trace."""
    provenance = info["provenance"]
    source, files = provenance["cluster"], provenance.get("cluster_files")
    if not files:
        if info["cluster"]["assumed"] or not source:
            return None
        if files is None and not _is_there(source):
            raise InputError(f"it does not say which files its cluster was read from ({source})")
        if not _is_there(source):
            raise InputError(f"its cluster was made in memory and is not in a file ({source})")
        return Path(source)
    if str(STANDARD_INPUT) in files:
        raise InputError("its cluster was read from standard input")
    manifests, *patches = files
    if not patches:
        return Path(manifests) if manifests else None
    cluster = cluster_for(manifests or None, read_trace(provenance["trace"], plugins, calibration))
    for patch in patches:
        cluster = cluster.patched(patch)
    return cluster


def _is_there(source: str) -> bool:

    return all(path.exists() for path in sources(Path(source)))


def _replaying(run: Run, option: str) -> str:
    """Returns the command to use instead, in which `option` replaces its earlier value."""
    command = run.info["provenance"].get("command")
    if not command:
        called = {
            "--shake": "harness.compare(runs, shake=N)",
            "--isolated": "harness.isolated(runs)",
            "--idle-causes": "harness.idle_causes(runs)",
        }
        return f"call {called[option.split()[0]]} in the program that replayed the run"
    again = shlex.join([*_without(shlex.split(command), option), *option.split()])
    return f"replay the run with this command: {again}"


def _without(command: list[str], option: str) -> Iterator[str]:
    name, *value = option.split()
    words = iter(command)
    for word in words:
        if word == name:
            if value:
                next(words, None)
        elif not (value and word.startswith(f"{name}=")):
            yield word
