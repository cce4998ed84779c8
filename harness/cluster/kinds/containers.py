"""What the containers of a pod ask for, one by one and together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, final

from harness.cluster.kinds.pods import HostPort
from harness.cluster.yaml.fields import Fields

Amounts: TypeAlias = Mapping[str, int]
ReadAmounts: TypeAlias = Callable[[Fields, str], Amounts]


def saturating_amounts(fields: Fields, name: str) -> Amounts:
    """A mapping of resources to quantities, each at most the largest amount there is."""
    table = fields.child(name)
    found = {resource: table.quota(resource, resource) for resource in table}
    return {resource: amount for resource, amount in found.items() if amount is not None}


def read_resources(fields: Fields, read: ReadAmounts = Fields.amounts) -> tuple[Amounts, Amounts]:
    """Limits and requests of a container, or of a pod as a whole; what is limited only is requested too."""
    resources = fields.child("resources")
    limits = read(resources, "limits")
    requests = {**limits, **read(resources, "requests")}
    return limits, requests


@final
class Container:
    """What counts of a container: its amounts, its ports, and whether it is a sidecar.

    Args:
        fields: the container.
        read: how its amounts are read; Kueue counts what does not fit 64 bits as the largest amount there is.

    Attributes:
        limits: what it is limited to.
        requests: what it asks for; what it limits without requesting it, it requests: the API server writes
            that into every pod.
        sidecar: whether it runs beside everything that is started after it.
    """

    def __init__(self, fields: Fields, read: ReadAmounts = Fields.amounts) -> None:
        self.limits, self.requests = read_resources(fields, read)
        self.sidecar = fields.string("restartPolicy") == "Always"
        self._ports = fields.items("ports")

    def ports(self, host_network: bool) -> list[HostPort]:
        """The ports that it takes of its node; with the host's network every port is one."""
        taken = []
        for port in self._ports:
            number = port.integer("hostPort", least=0, most=65535)
            if host_network and not number:
                number = port.integer("containerPort", least=0, most=65535)
            protocol, address = port.string("protocol", "TCP"), port.string("hostIP", "0.0.0.0")  # noqa: S104
            if number:
                taken.append(HostPort(protocol or "TCP", address or "0.0.0.0", number))  # noqa: S104
        return taken


def pod_requests(
    containers: Iterable[Container],
    init: Iterable[Container],
    missing: Amounts,
    as_whole: Amounts,
    overhead: Amounts,
) -> dict[str, int]:
    """Resource -> amount of a pod; `missing` is what a container counts for that does not say.

    Init containers run one after another, each beside the sidecars that were started before it. Requests of
    the pod as a whole stand before those of its containers.
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
