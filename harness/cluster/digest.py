"""Computes the digest of a cluster, which is a hash of the modelled parts of its manifests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from fractions import Fraction
from typing import Any

from harness.cluster.model import NEWER, Cluster

_BESIDE = ("warnings", "assumed", "source", "files", "manifests", "scale", "as_of")
"""The fields of a `Cluster` that are not part of its digest."""


def digest_of(cluster: Cluster) -> str:
    """Returns the digest of a cluster. See `Cluster.digest`."""
    made = {
        item.name: list(value.items()) if isinstance(value, Mapping) else value
        for item in fields(cluster)
        if item.name not in _BESIDE and _counts(item, cluster)
        for value in (getattr(cluster, item.name),)
    }
    text = json.dumps(made, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Fraction):
        return str(value)
    return {item.name: getattr(value, item.name) for item in fields(value) if _counts(item, value)}


def _counts(item: Field[Any], value: Any) -> bool:
    """Returns True if a field is part of a digest.

    A `NEWER` field is part of it only if it differs from its default.
    """
    if not item.compare:
        return False
    usual = item.default if item.default_factory is MISSING else item.default_factory()
    return not item.metadata.keys() & NEWER.keys() or getattr(value, item.name) != usual
