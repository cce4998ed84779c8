"""Computes the resources that the containers of a pod request, individually and together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias, final

from harness.cluster.kinds.pods import HostPort
from harness.cluster.yaml.fields import Fields

Amounts: TypeAlias = Mapping[str, int]
ReadAmounts: TypeAlias = Callable[[Fields, str], Amounts]


def pod_amounts(fields: Fields, name: str) -> Amounts:
    """Returns quantities by resource. As in the API server, extended resources have whole quantities.

    Upstream: `validateResourceQuantityValue` and `IsIntegerResourceName` in pkg/apis/core.
    """
    found = fields.amounts(name)
    table = fields.child(name)
    for resource in found:
        if "/" in resource and "kubernetes.io/" not in resource:
            quantity = table.quantity(resource)
            if quantity is not None and quantity.denominator != 1:
                table.fault(
                    resource, f"{table.raw(resource)} must be a whole number: a pod holds whole devices"
                )
    return found


def saturating_amounts(fields: Fields, name: str) -> Amounts:
    """Returns quantities by resource. A quantity beyond 64 bits becomes the largest possible quantity."""
    table = fields.child(name)
    found = {resource: table.quota(resource, resource) for resource in table}
    return {resource: amount for resource, amount in found.items() if amount is not None}


def read_resources(fields: Fields, read: ReadAmounts = pod_amounts) -> tuple[Amounts, Amounts]:
    """Returns the limits and requests of a container or pod.

    If there is a limit but no request, the limit is also the request.
    """
    resources = fields.child("resources")
    limits = read(resources, "limits")
    return limits, {**limits, **read(resources, "requests")}


@final
class Container:
    """The modelled parts of a container: its quantities, its ports, and whether it is a sidecar.

    The function `read` reads the container's quantities. For Kueue, it is `saturating_amounts`, which limits
    quantities to 64 bits.

    Attributes:
        name: the name of the container.
        requests: the requests of the container. If a resource has a limit but no request, the limit is also
            the request, because the API server fills in requests in this way.
        sidecar: whether the container keeps running beside all containers that start after it.
    """

    def __init__(self, fields: Fields, read: ReadAmounts = pod_amounts) -> None:
        self.name = str(fields.raw("name"))
        self.limits, self.requests = read_resources(fields, read)
        self.sidecar = fields.string("restartPolicy") == "Always"
        self._ports = fields.items("ports")

    def ports(self, host_network: bool) -> list[HostPort]:
        """Returns the ports that the container occupies on its node.

        With the host network, the container occupies all of its ports.
        """
        taken = []
        for port in self._ports:
            number = port.integer("hostPort", least=0, most=65535)
            if host_network and not number:
                number = port.integer("containerPort", least=0, most=65535)
            protocol, address = port.string("protocol", "TCP"), port.string("hostIP", "0.0.0.0")  # noqa: S104
            if number:
                taken.append(HostPort(protocol or "TCP", address or "0.0.0.0", number))  # noqa: S104
        return taken


class Held(NamedTuple):
    """What the containers of a running pod hold on its node, which differs from the spec during a resize.

    Upstream: `AggregateContainerRequests` in component-helpers/resource/helpers.go.

    Attributes:
        amounts: for each name of a container, the larger of the allocated and the actual quantities.
        infeasible: whether the node refused the resize, so that the requests in the spec don't count.
    """

    amounts: Mapping[str, Amounts]
    infeasible: bool

    def by(self, container: Container) -> Amounts:
        """Returns the requests of a container that count."""
        held = self.amounts.get(container.name)
        if held is None:
            return container.requests
        return held if self.infeasible else _larger(container.requests, held)


def read_held(status: Fields) -> Held:
    """Reads what containers hold from a pod's `status`."""
    amounts = {
        str(each.raw("name")): _larger(
            each.amounts("allocatedResources"), each.child("resources").amounts("requests")
        )
        for name in ("containerStatuses", "initContainerStatuses")
        for each in status.items(name)
        if "allocatedResources" in each or "resources" in each
    }
    pending = (each for each in status.items("conditions") if each.string("type") == "PodResizePending")
    return Held(amounts, any(each.string("reason") == "Infeasible" for each in pending))


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def pod_requests(
    containers: Iterable[Container],
    init: Iterable[Container],
    missing: Amounts,
    as_whole: Amounts,
    overhead: Amounts,
) -> dict[str, int]:
    """Returns the quantities that a pod requests, by resource.

    Init containers run one after another, each together with the sidecars that started before it. Requests of
    the pod as a whole override the requests of its containers. `missing` contains the quantities that are
    assumed for a container without requests.
    """
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in containers:
        _add(total, {**missing, **container.requests})
    for container in init:
        amounts = {**missing, **container.requests}
        if container.sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = {key: amounts.get(key, 0) + sidecars.get(key, 0) for key in {**amounts, **sidecars}}
        for resource, amount in amounts.items():
            largest[resource] = max(largest.get(resource, 0), amount)
    for resource, amount in largest.items():
        total[resource] = max(total.get(resource, 0), amount)
    total.update(as_whole)
    _add(total, overhead)
    return total


def _add(total: dict[str, int], amounts: Amounts) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount
