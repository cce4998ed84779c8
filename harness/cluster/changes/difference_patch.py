"""Computes a patch from the differences between two clusters with the same objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.base.errors import InputError
from harness.cluster.model import Cluster

_NAMES = ("name", "key", "schedulerName")  # the fields that can identify an item of a list


def difference_patch(cluster: Cluster, other: Cluster) -> list[dict[str, Any]]:
    """Returns the documents of a patch that turns one cluster into the other.

    The list is empty if the clusters are equal.

    `other` has the same objects as `cluster`, but other values of fields, such as knobs.

    Raises:
        InputError: an object, or an item of a list, exists in only one of the clusters.
    """
    pairs = zip(cluster.manifests, other.manifests, strict=False)
    found = []
    for before, after in pairs:
        changed = _changed(before, after)
        if changed:
            metadata = {
                name: value
                for name, value in (before.get("metadata") or {}).items()
                if name in ("name", "namespace")
            }
            found.append(
                {"apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": metadata, **changed}
            )
    patched = cluster.patched(found) if found else cluster
    if patched.digest != other.digest:
        raise InputError(
            f"{other.source} differs from {cluster.source} in more than the values of fields",
            hint="give both clusters the same objects and compare them again",
        )
    return found


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that differ, with their new values. A removed field has the value None."""
    found: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        was = before.get(name)
        if value == was:
            continue
        if isinstance(value, Mapping) and isinstance(was, Mapping):
            found[name] = _changed(was, value)
        elif isinstance(value, list) and isinstance(was, list) and _alike(was, value):
            found[name] = [
                {**_named(item), **_changed(old, item)}
                for old, item in zip(was, value, strict=True)
                if old != item
            ]
        else:
            found[name] = value
    return found


def _alike(before: list[Any], after: list[Any]) -> bool:
    return len(before) == len(after) and all(
        isinstance(old, Mapping) and isinstance(new, Mapping) and _named(old) == _named(new)
        for old, new in zip(before, after, strict=True)
    )


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in _NAMES if name in item}
