"""Describes a kind of manifests, with its versions, its reader, the verdicts on its fields, and its knobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from harness.cluster.coverage.verdicts import Coverage
    from harness.cluster.draft import Draft
    from harness.cluster.kinds.quotas import Quota
    from harness.cluster.yaml.fields import Fields


WriteQuotas: TypeAlias = "Callable[[Mapping[str, Quota]], Iterable[Mapping[str, Any]]]"


@fixed()
class Knob(Value):
    """A number in an object's manifest that users can vary by name.

    Attributes:
        field: the field in a manifest, such as `spec.weight`.
        by: what the key in brackets means: "" if there is no key, `resource`, or `flavor` for a resource in a
            flavor.
        needed: whether the field is required, so that it can't be removed.
        whole: whether the value must be an integer of at least 1.
    """

    name: str
    field: str
    by: str = ""
    needed: bool = False
    whole: bool = False


@fixed()
class Kind(Value):
    """The description of a kind of manifests.

    Attributes:
        versions: the supported API versions.
        read: a function that adds an object to the draft.
        coverage: the verdicts on the fields of the kind.
        check: a function that checks rules between objects, if a plugin adds the kind together with such
            rules.
        knobs: the knobs of an object, if a plugin adds the kind.
        write: a function that returns quotas, by name, as manifests of the kind, if a plugin adds the kind.
            Objects of the kind then have a method `quota(cluster)`, which returns a `Quota`.
    """

    versions: tuple[str, ...]
    read: Callable[[Fields, Draft], None]
    coverage: Coverage
    check: Callable[[Draft], None] | None = None
    knobs: tuple[Knob, ...] = ()
    write: WriteQuotas | None = None
