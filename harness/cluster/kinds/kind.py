"""How a kind of manifests is read: its versions, its reader, and what is said of its fields."""

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
    """How one kind is read.

    Attributes:
        versions: the API versions that are understood.
        read: adds the object to the draft.
        coverage: what is said of each of its fields.
        check: the rules between objects, where a plugin brings them with the kind.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    coverage: Coverage
    check: Callable[[Draft], None] | None = None
