"""The clusters of a replay command. Their names distinguish the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import OptionError
from harness.base.files.standard_input import CALLED, STANDARD_INPUT
from harness.base.names import LONGEST, as_word, is_name
from harness.cli.screen import tell
from harness.cluster.derive import plain_stem
from harness.cluster.model import Cluster
from harness.cluster.yaml.sources import sources

_BASE = "base"
_ENDINGS = (".cluster", ".patch", ".events")
"""Parts of file names that are left out of cluster names, such as `.cluster` before the suffix."""


class World(NamedTuple):
    """A named cluster of a replay command. If the command has only one cluster, the name is ""."""

    name: str
    cluster: Cluster

    def label(self, label: str) -> str:
        """Returns the label of a run on this cluster: `LABEL@NAME`, or only the label if the name is ""."""
        return f"{label}@{self.name}" if self.name else label


def read_worlds(
    clusters: Sequence[str],
    patches: Sequence[str],
    read: Callable[[Path | None], Cluster],
    events: Sequence[Path] = (),
) -> list[World]:
    """Returns the clusters of a command: each cluster unpatched, and once with each patch.

    A single cluster without patches has the name "". A single cluster with patches is named `base`, unless
    the user names it, and its patched copies have the names of the patches. If there are several clusters, a
    patched copy is named `CLUSTER+PATCH`.

    `clusters` has `[NAME=]PATH` for each cluster, and `patches` for each patch. Without clusters, one cluster
    without a path is read. `events` has tables of changes over time, which are applied to each cluster before
    patches.

    Raises:
        OptionError: two clusters have the same name, or a file is not a table.
        InputError: a cluster or patch can't be read, or a patch does not fit a cluster.
    """
    changes = named_files(patches, "--patch")
    found: Sequence[tuple[str, Path | None]] = named_files(clusters, "--cluster") or [("", None)]
    if len(found) == 1:
        ((_, path),) = found
        found = [(_given_name(clusters) or _BASE if patches else "", path)]
    worlds = []
    for name, path in found:
        cluster = read(path)
        for table in events:
            cluster = cluster.patched(_table(table))
        worlds.append(World(name, cluster))
        for change, file in changes:
            called = change if len(found) == 1 else f"{name}+{change}"
            worlds.append(World(called, cluster.patched(file)))
    _require_names(worlds)
    return worlds


def _table(path: Path) -> Path:
    from harness.cluster.changes.event_table import is_table

    if not is_table(path):
        raise OptionError(
            f"--events {path} does not have the name of a table",
            hint="use the suffix .csv, .csv.gz or .parquet; manifests with times are for --patch",
        )
    return path


def _given_name(clusters: Sequence[str]) -> str:
    return next((name for name, _ in (_split(text, "--cluster") for text in clusters)), "")


def _require_names(worlds: Sequence[World]) -> None:
    names = [world.name for world in worlds]
    for name in names:
        if names.count(name) > 1 or len(name) > LONGEST:
            what = "two clusters would have this name" if names.count(name) > 1 else "it is too long"
            raise OptionError(
                f"a cluster cannot have the name {name!r}: {what}",
                hint="choose names: --cluster NAME=PATH, --patch NAME=PATH",
            )


def named_files(texts: Iterable[str], option: str) -> list[tuple[str, Path]]:
    """Returns files or folders with their names, given as `[NAME=]PATH` or derived from the file names.

    Derived names have no suffixes. If file names are equal, the parent folders distinguish them. For example,
    `base/queues.yaml` gets the name `base-queues`.

    Raises:
        OptionError: a name is given twice, or no folder distinguishes two files.
    """
    given = [_split(text, option) for text in texts]
    taken = [name for name, _ in given if name]
    levels = [1] * len(given)
    while True:
        names = [name or _name(path, level) for (name, path), level in zip(given, levels, strict=True)]
        count = Counter(names)
        alike = [at for at, name in enumerate(names) if count[name] > 1]
        if not alike:
            return [(name, path) for name, (_, path) in zip(names, given, strict=True)]
        grown = [at for at in alike if not given[at][0] and levels[at] < _levels(given[at][1])]
        if not grown or any(taken.count(names[at]) > 1 for at in alike):
            name, path = given[alike[-1]]
            raise OptionError(
                f"{option}: two files would have the name {name or _name(path, 1)!r}",
                hint=f"give them different names: {option} first=PATH {option} second={path}",
            )
        for at in grown:
            levels[at] += 1


def _split(text: str, option: str) -> tuple[str, Path]:
    """Returns the name and the path, where the name is "" if none is given.

    `./a=b.yaml` is a path, because no name has a slash.
    """
    name, equals, path = text.partition("=")
    if text and (not equals or "/" in name):
        return "", Path(text)
    if not path:
        raise OptionError(f"{option} {text!r} names no file", hint="give a PATH, or NAME=PATH")
    if not is_name(name):
        raise OptionError(
            f"{option} {text!r}: {name!r} cannot be the name of {path!r}",
            hint=f"use up to {LONGEST} letters, digits, and `-_.+`; the first must not be `-` or `.`",
        )
    return name, Path(path)


def _name(path: Path, level: int) -> str:
    """Returns the last parts of a path as a name. The names of several paths are joined by +."""
    name = "+".join("-".join(_parts(each)[-level:]) for each in sources(path))
    return as_word(name)[-LONGEST:].lstrip(".-") or "cluster"


def _levels(path: Path) -> int:
    return max(len(_parts(each)) for each in sources(path))


def _parts(path: Path) -> tuple[str, ...]:
    if path == STANDARD_INPUT:
        return (CALLED,)
    whole = path.resolve() if ".." in path.parts else path.absolute()
    stem = whole.name if whole.is_dir() else plain_stem(whole)
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    return (*whole.parts[1:-1], stem)


def tell_quota_is_capacity(cluster: Cluster) -> None:
    """Print a note if a patched cluster has no nodes, because more quota then also means more hardware."""
    if not cluster.nodes and not cluster.nodes_change and cluster.cluster_queues:
        tell(
            "note: the manifests have no nodes, so the sum of quotas counts as the hardware, and a patch "
            "that adds quota also adds hardware. To avoid this, dump the nodes too"
        )
