"""Describes a kind of manifests: its versions, its reader, and the verdicts on its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from harness.cluster.coverage.verdicts import Coverage
    from harness.cluster.draft import Draft
    from harness.cluster.yaml.fields import Fields


@fixed()
class Kind(Value):
    """The description of a kind of manifests.

    Attributes:
        versions: the supported API versions.
        read: a function that adds an object to the draft.
        coverage: the verdicts on the fields of the kind.
        check: a function that checks rules between objects, if a plugin adds the kind together with such
            rules.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    coverage: Coverage
    check: Callable[[Draft], None] | None = None
