"""Reads the parts of ResourceClaimTemplates that Kueue counts.

These templates describe the devices that each pod claims.

https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
"""

from __future__ import annotations

from harness.base.units import INT64_MAX
from harness.base.values import Value, fixed
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.yaml.fields import Fields

EXACT_COUNT, ALL = "ExactCount", "All"


@fixed()
class DeviceRequest(Value):
    """A single request within a claim.

    Attributes:
        device_class: the DeviceClass, or "" if the request lists alternatives.
        count: the number of devices, if `mode` is ExactCount.
        mode: ExactCount or All.
        selects: whether the request selects devices by expressions.
        admin: whether the request is for administrator access. Other pods can still claim such devices.
        alternatives: whether the request lists alternatives (`firstAvailable`).
    """

    device_class: str
    count: int = 1
    mode: str = EXACT_COUNT
    selects: bool = False
    admin: bool = False
    alternatives: bool = False


@fixed()
class ClaimTemplate(Value):
    """A ResourceClaimTemplate.

    Attributes:
        requests: the device requests of a claim.
        constrained: whether the template restricts which devices can be combined (`constraints`).
        configured: whether the template configures devices (`config`).
    """

    name: str
    namespace: str
    requests: tuple[DeviceRequest, ...] = ()
    constrained: bool = False
    configured: bool = False


def read_claim_template(fields: Fields, draft: Draft) -> None:
    """Read a ResourceClaimTemplate.

    Up to v1beta1, a request itself has the fields that later versions put into `exactly`.
    """
    metadata = read_metadata(fields)
    devices = fields.child("spec").child("spec").child("devices")
    found = ClaimTemplate(
        metadata.name,
        metadata.namespace,
        tuple(_request(item) for item in devices.items("requests")),
        constrained=bool(devices.items("constraints")),
        configured=bool(devices.items("config")),
    )
    draft.claim_templates.add((found.namespace, found.name), found, fields)


def _request(item: Fields) -> DeviceRequest:
    if "firstAvailable" in item:
        item.raw("firstAvailable")
        return DeviceRequest("", alternatives=True)
    exactly = item if "deviceClassName" in item else item.child("exactly")
    return DeviceRequest(
        exactly.string("deviceClassName", required=True),
        exactly.integer("count", 1, least=1, most=INT64_MAX),
        exactly.choice("allocationMode", (EXACT_COUNT, ALL), EXACT_COUNT),
        selects=bool(exactly.items("selectors")),
        admin=exactly.boolean("adminAccess"),
    )
