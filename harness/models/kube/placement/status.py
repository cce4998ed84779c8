"""Represents a filter's rejection of a node, with the plugin, the reason, and whether preemption may help."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_NAME = "NodeName"
TAINT_TOLERATION: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
NODE_RESOURCES_FIT: Final = "NodeResourcesFit"
POD_TOPOLOGY_SPREAD: Final = "PodTopologySpread"
INTER_POD_AFFINITY: Final = "InterPodAffinity"


class Code(Enum):
    """The kind of rejection, with kube-scheduler's names."""

    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    ERROR = "Error"


class Status(NamedTuple):
    """A rejection of a node. Success is represented by None."""

    code: Code
    plugin: str
    reasons: tuple[str, ...]


UNSCHEDULABLE_NODE = Status(Code.UNRESOLVABLE, NODE_UNSCHEDULABLE, ("node(s) were unschedulable",))
OTHER_NODE = Status(Code.UNRESOLVABLE, NODE_NAME, ("node(s) didn't match the requested node name",))
UNTOLERATED = Status(Code.UNRESOLVABLE, TAINT_TOLERATION, ("node(s) had untolerated taint(s)",))
NOT_SELECTED = Status(
    Code.UNRESOLVABLE, NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",)
)
PORT_TAKEN: Final = Status(
    Code.UNSCHEDULABLE, NODE_PORTS, ("node(s) didn't have free ports for the requested pod ports",)
)
NO_TOPOLOGY = Status(
    Code.UNRESOLVABLE,
    POD_TOPOLOGY_SPREAD,
    ("node(s) didn't match pod topology spread constraints (missing required label)",),
)
TOO_SKEWED = Status(
    Code.UNSCHEDULABLE, POD_TOPOLOGY_SPREAD, ("node(s) didn't match pod topology spread constraints",)
)
NOT_NEAR = Status(Code.UNRESOLVABLE, INTER_POD_AFFINITY, ("node(s) didn't match pod affinity rules",))
TOO_NEAR = Status(Code.UNSCHEDULABLE, INTER_POD_AFFINITY, ("node(s) didn't match pod anti-affinity rules",))
UNWANTED = Status(
    Code.UNSCHEDULABLE, INTER_POD_AFFINITY, ("node(s) didn't satisfy existing pods anti-affinity rules",)
)
NO_VICTIMS = Status(Code.UNRESOLVABLE, "", ("No preemption victims found for incoming pod",))
NO_VICTIM_NEEDED = Status(Code.ERROR, "", ("expected at least one victim pod on node",))
