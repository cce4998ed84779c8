"""Computes the digest of a cluster, which is a hash of the modelled parts of its manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import cache
from typing import Any

from harness.base.memo import Memo
from harness.cluster.model import NEWER, Cluster

_BESIDE = ("warnings", "assumed", "source", "files", "manifests", "scale", "as_of")
"""The fields of a `Cluster` that are not part of its digest."""


def digest_of(cluster: Cluster) -> str:
    """Returns the digest of a cluster. See `Cluster.digest`."""
    made = {
        name: list(value.items()) if isinstance(value, Mapping) else value
        for name, value in _fields(cluster)
        if name not in _BESIDE
    }
    known = Memo[int, object]()  # by identity, because the same nodes change again and again

    def plain(value: Any) -> object:
        found = known.get(id(value))
        if found is None:
            found = known[id(value)] = _plain(value)
        return found

    text = json.dumps(made, sort_keys=True, separators=(",", ":"), default=plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return str(value)
    return dict(_fields(value))


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields that are part of a digest, without `NEWER` fields that have their defaults."""
    for name, is_newer, usual in _compared(value.__class__):
        own = getattr(value, name)
        if not is_newer or own != usual:
            yield name, own


@cache
def _compared(kind: Any) -> list[tuple[str, bool, Any]]:
    """Returns the compared fields of a class, with a flag for `NEWER` fields and with their defaults."""
    return [
        (
            item.name,
            not item.metadata.keys().isdisjoint(NEWER),
            item.default if item.default_factory is MISSING else item.default_factory(),
        )
        for item in fields(kind)
        if item.compare
    ]
