"""States how a replay treats the fields that several kinds have in common, such as metadata."""

from __future__ import annotations

from harness.cluster.coverage.verdicts import Row, assumed, harmless, modelled

_NOTED = "an API server or a tool records it, and no scheduler reads it"
_STAYS = "the object stays in the cluster, although its deletion has begun"
CONTROLLERS = "a controller derives it from fields that harness reads"

_NOTES = (
    "creationTimestamp", "deletionGracePeriodSeconds", "finalizers", "generateName", "generation",
    "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
)  # fmt: skip


def metadata(
    *,
    named: bool = True,
    namespaced: bool = False,
    labels: bool = False,
    deleted: str = _STAYS,
    counts: tuple[str, ...] = (),
) -> list[Row]:
    """Returns verdicts on the fields of an object's metadata.

    `named` is false if only one object can exist. `labels` says whether all labels of the object matter.
    `deleted` says what harness assumes about an object whose deletion has begun, or is "". `counts` has
    further fields that matter.
    """
    return [
        *(modelled("metadata.name") if named else harmless("there is one", "metadata.name")),
        *(
            modelled("metadata.namespace")
            if namespaced
            else harmless("objects of this kind belong to no namespace", "metadata.namespace")
        ),
        *(
            modelled("metadata.labels{}")
            if labels
            else harmless("nothing selects objects of this kind by their labels", "metadata.labels")
        ),
        *harmless("nothing reads the annotations of this kind of object", "metadata.annotations"),
        *(assumed(deleted, "metadata.deletionTimestamp") if deleted else ()),
        *modelled(*(f"metadata.{name}" for name in counts)),
        *harmless(
            _NOTED, "apiVersion", "kind", *(f"metadata.{name}" for name in _NOTES if name not in counts)
        ),
    ]


OWNERS: list[Row] = [
    *modelled("metadata.ownerReferences[].(kind|name|uid)"),
    *harmless(
        "harness distinguishes owners by uid, or by kind and name",
        "metadata.ownerReferences[].(apiVersion|blockOwnerDeletion|controller)",
    ),
]
"""Coverage of owner references, for kinds whose owners matter."""

STATUS: list[Row] = harmless(CONTROLLERS, "status")


def selector(path: str) -> list[Row]:
    """Returns verdicts on the fields of a label selector."""
    return modelled(path, f"{path}.matchLabels{{}}", f"{path}.matchExpressions[].(key|operator|values)")


def taints(path: str) -> list[Row]:
    """Returns verdicts on the fields of a list of taints."""
    return [
        *modelled(f"{path}[].(key|value|effect)"),
        *harmless("taints stay for a whole replay", f"{path}[].timeAdded"),
    ]


def tolerations(path: str) -> list[Row]:
    """Returns verdicts on the fields of a list of tolerations."""
    return modelled(f"{path}[].(key|operator|value|effect|tolerationSeconds)")
