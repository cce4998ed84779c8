"""Converts a specification to the fields of a file. This is the inverse of `parsing.spec_of`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from harness.studies.experiments.specification import Arm, Factor, Seeds, Spec


def fields_of(spec: Spec) -> dict[str, Any]:
    """Returns the fields from which `spec_of` makes an equal experiment, with paths relative to its file."""
    single = list(takewhile(lambda group: len(group) == 1, spec.groups))
    patches = {label: path for label, path in spec.patches.items() if path is not None}
    found = {
        "experiment": spec.name,
        "traces": _paths(spec.traces, spec.folder),
        "clusters": _paths({label: path for label, path in spec.clusters.items() if path}, spec.folder),
        "patches": _paths(patches, spec.folder),
        "plugins": [_plugin(arm) for arm in spec.arms],
        "settings": dict(spec.settings),
        "vary": {factor.name: list(factor.values) for (factor,) in single},
        "zip": [_factors(group) for group in spec.groups[len(single) :]],
        "exclude": [{name: list(values) for name, values in rule.items()} for rule in spec.exclude],
        "random": "" if spec.random is None else f"{spec.random.count}@{spec.random.seed}",
        "seeds": {} if spec.seeds is None else _seeds(spec.seeds),
        "keep": spec.keep,
        "metrics": list(spec.metrics),
    }
    return {name: value for name, value in found.items() if value}


def _paths(files: Mapping[str, Path | None], folder: Path) -> dict[str, str]:
    return {
        label: ",".join(_relative(Path(part), folder) for part in str(path).split(","))
        for label, path in files.items()
    }


def _relative(path: Path, folder: Path) -> str:
    return (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()


def _plugin(arm: Arm) -> str | dict[str, Any]:
    name = arm.plugin if arm.label == arm.plugin else f"{arm.plugin}@{arm.label}"
    return {name: dict(arm.options)} if arm.options else name


def _factors(group: Sequence[Factor]) -> dict[str, Any]:
    return {factor.name: list(factor.values) for factor in group}


def _seeds(seeds: Seeds) -> dict[str, Any]:
    return {"count": seeds.count, "first": seeds.first, seeds.of: seeds.by}
