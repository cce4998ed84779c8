"""Reads the release of Kueue's controller from its image tag, and feature gates from its command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, final

from harness.base.json_text import mapping_of
from harness.base.values import Value, fixed
from harness.cluster.kinds.kueue_releases import NEWEST, Release, nearest_release

_IMAGE = re.compile(r"(?:^|/)kueue:(?P<tag>[\w][\w.-]*)(?:@.*)?$")
_GATES = re.compile(r"--?feature-gates=?(.*)")
_OVER = ("Succeeded", "Failed")
_ON = ("1", "t", "true")


@final
@fixed()
class KueueController(Value):
    """The Kueue controller in the manifests.

    Attributes:
        where: the object that specifies the image, such as `Deployment
            kueue-system/kueue-controller-manager`.
    """

    tag: str
    where: str


def kueue_controller(manifests: Iterable[Mapping[str, Any]]) -> KueueController | None:
    """Returns Kueue's controller from its Deployment, or from an existing Pod if there is no Deployment.

    If the manifests contain neither of them, the function returns None.
    """
    found = _found(manifests)
    return None if found is None else found[0]


def controller_gates(manifests: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Returns the feature gates in the command line of Kueue's controller, as Kueue's Helm chart sets them.

    Upstream: `LoadAndValidateFeatureGates` in pkg/config/validation.go.
    """
    found = _found(manifests)
    words = [] if found is None else [*_words(found[1], "command"), *_words(found[1], "args")]
    text = ""
    for word, after in pairwise([*words, ""]):
        match = _GATES.fullmatch(word)
        if match is not None:
            text = match[1] or after
    pairs = (each.partition("=") for each in text.split(",") if "=" in each)
    return {name.strip(): value.strip().lower() in _ON for name, _, value in pairs}


def _found(manifests: Iterable[Mapping[str, Any]]) -> tuple[KueueController, Mapping[str, Any]] | None:
    """Returns Kueue's controller and its container, or None."""
    found = [
        (KueueController(tag, _name(each)), container)
        for each in manifests
        for tag, container in _tagged(each)
    ]
    deployments = (each for each in found if each[0].where.startswith("Deployment "))
    return next(deployments, next(iter(found), None))


def _words(container: Mapping[str, Any], name: str) -> list[str]:
    words = container.get(name)
    return [str(word) for word in words] if isinstance(words, list) else []


def controller_release(controller: KueueController | None) -> Release:
    """Returns the known release that is nearest to a controller's. Without a controller, it is the newest."""
    return (nearest_release(controller.tag) if controller is not None else None) or NEWEST


def is_kueue_controller(manifest: Mapping[str, Any]) -> bool:
    """Returns True if a manifest is the Deployment of Kueue's controller."""
    return manifest.get("kind") == "Deployment" and any(_tagged(manifest))


def _tagged(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the tags of Kueue's images and their containers in a Deployment, or in a Pod that isn't over."""
    kind, version = manifest.get("kind"), manifest.get("apiVersion")
    spec = mapping_of(manifest, "spec")
    if kind == "Deployment" and version == "apps/v1":
        spec = mapping_of(mapping_of(spec, "template"), "spec")
    elif kind != "Pod" or version != "v1" or _is_over(manifest):
        return
    containers = spec.get("containers")
    for container in containers if isinstance(containers, list) else ():
        image = container.get("image") if isinstance(container, Mapping) else None
        match = _IMAGE.search(image) if isinstance(image, str) else None
        if match is not None:
            yield match["tag"], container


def _is_over(pod: Mapping[str, Any]) -> bool:
    return (
        "deletionTimestamp" in mapping_of(pod, "metadata") or mapping_of(pod, "status").get("phase") in _OVER
    )


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = mapping_of(manifest, "metadata")
    name = f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}"
    return f"{manifest['kind']} {name}"
