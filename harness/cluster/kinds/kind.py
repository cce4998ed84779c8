"""The description of a kind of manifests: its versions, its reader, and the verdicts on its fields."""

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
    """The description of one kind.

    Attributes:
        versions: the supported API versions.
        read: adds the object to the draft.
        coverage: the verdicts on its fields.
        check: checks rules between objects, if a plugin adds them with the kind.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    coverage: Coverage
    check: Callable[[Draft], None] | None = None
