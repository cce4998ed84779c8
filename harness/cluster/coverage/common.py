"""What is said of the fields that several kinds have."""

from __future__ import annotations

from harness.cluster.coverage.verdicts import Row, assumed, harmless, modelled

_NOTED = "an API server or a tool notes it, and no scheduler looks at it"
CONTROLLERS = "a controller derives it from fields that harness reads"

_NOTES = (
    "apiVersion",
    "kind",
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "metadata.generateName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.ownerReferences",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.uid",
)


def metadata(
    *,
    named: bool = True,
    namespaced: bool = False,
    labels: bool = False,
    stays: bool = True,
    counts: tuple[str, ...] = (),
) -> list[Row]:
    """What is said of an object's metadata.

    Args:
        named: whether its name tells it from others; False where there is one.
        namespaced: whether it belongs to a namespace.
        labels: whether its labels count, all of them.
        stays: whether nothing is made of the time of its deletion.
        counts: what else of it counts.
    """
    return [
        *(modelled("metadata.name") if named else harmless("there is one", "metadata.name")),
        *(
            modelled("metadata.namespace")
            if namespaced
            else harmless("an object of the whole cluster has none", "metadata.namespace")
        ),
        *(
            modelled("metadata.labels{}")
            if labels
            else harmless("nothing selects objects of this kind by them", "metadata.labels")
        ),
        *harmless("nothing looks at those of this kind", "metadata.annotations"),
        *(assumed("the object stays as it is", "metadata.deletionTimestamp") if stays else ()),
        *modelled(*(f"metadata.{name}" for name in counts)),
        *harmless(_NOTED, *(name for name in _NOTES if name.removeprefix("metadata.") not in counts)),
    ]


OWNERS: list[Row] = [
    *modelled(*(f"metadata.ownerReferences[].{name}" for name in ("kind", "name", "uid"))),
    *harmless(
        "a uid, or kind and name, tell one owner from another",
        *(
            f"metadata.ownerReferences[].{name}"
            for name in ("apiVersion", "blockOwnerDeletion", "controller")
        ),
    ),
]
"""What an object was made for, of a kind for which that counts."""

STATUS: list[Row] = harmless(CONTROLLERS, "status")


def selector(path: str) -> list[Row]:
    """A label selector."""
    return modelled(
        path,
        f"{path}.matchLabels{{}}",
        *(f"{path}.matchExpressions[].{name}" for name in ("key", "operator", "values")),
    )


def taints(path: str) -> list[Row]:
    """A list of taints."""
    return [
        *modelled(*(f"{path}[].{name}" for name in ("key", "value", "effect"))),
        *harmless("taints stay for a whole replay", f"{path}[].timeAdded"),
    ]


TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")


def tolerations(path: str) -> list[Row]:
    """A list of tolerations."""
    return modelled(*(f"{path}[].{name}" for name in TOLERATION))
