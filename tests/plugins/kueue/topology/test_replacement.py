"""Where pods go that lost their node: rules by name, on a few hosts."""

from __future__ import annotations

from typing import Any

from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.cluster.kinds.topology import Topology
from harness.cluster.model import Cluster, Node, ResourceFlavor, frozen
from harness.policy import PodSet
from harness_plugins.kueue.rules.topology.replacement import Replacement, added, replacement
from harness_plugins.kueue.state.topology.flavors import Placed, TopologyFlavors, located
from harness_plugins.kueue.state.topology.tree import NamedDomain

RACK, HOST = "rack", "kubernetes.io/hostname"


def flavors(**hosts: tuple[str, int]) -> TopologyFlavors:
    """Hosts of racks with so many GPUs."""
    nodes = {
        name: Node(name, frozen({"gpu": gpus, "pods": 10}), frozen({RACK: rack, HOST: name}))
        for name, (rack, gpus) in hosts.items()
    }
    topology, flavor = Topology("t", (RACK, HOST)), ResourceFlavor("f", topology="t")
    world = Cluster(nodes=frozen(nodes), flavors=frozen({"f": flavor}), topologies=frozen({"t": topology}))
    return TopologyFlavors(world, overlapping=True)


def pods(where: TopologyFlavors, name: str = "main", slices: int = 0, **on: Any) -> Placed:
    """Pods of a GPU each on hosts; what else is given is asked of the topology."""
    counts = {host: count for host, count in on.items() if type(count) is int}
    request = TopologyRequest(
        **{key: value for key, value in on.items() if key not in counts},
        slices=(SliceLayer(RACK, slices),) if slices else (),
    )
    pod_set = PodSet(name, sum(counts.values()), 1, frozen({"gpu": 1}), topology=request)
    domains = [NamedDomain((host,), count) for host, count in counts.items()]
    return located(pod_set, where.by_name["f"], domains)


def found(where: TopologyFlavors, *placed: Placed, lost: str = "x") -> list[dict[str, int]] | None:
    """Host -> pods of each pod set once those on a host have other places; None where they have none."""
    where.hold(placed)
    after: Replacement = replacement(placed, lost, where, mixed=True)
    if after.without is not None:
        return None
    return [{values[-1]: count for values, count in each.domains} for each in after.placed]


def test_what_stands_stays_and_takes_room() -> None:
    """Two of four pods lost x: y is full of the other two, so that they go to z."""
    where = flavors(x=("r", 4), y=("r", 2), z=("s", 4))
    gone = flavors(y=("r", 2), z=("s", 4))
    before = pods(where, x=2, y=2, unconstrained=True)
    assert found(gone, *gone.now([before])) == [{"y": 2, "z": 2}]


def test_a_lost_node_that_is_back_has_no_room_for_a_second_copy() -> None:
    """The pods take their room on x all the same; with room for two copies they stay there."""
    assert found(flavors(x=("r", 3)), pods(flavors(x=("r", 3)), x=2)) is None
    where = flavors(x=("r", 4))
    assert found(where, pods(where, x=2)) == [{"x": 2}]


def test_required_is_tied_to_the_rest_and_free_without_one() -> None:
    """One pod on y keeps the other in rack r, where there is no room; without it both may leave."""
    where = flavors(y=("r", 1), z=("s", 4))
    assert found(where, pods(where, x=1, y=1, required=RACK)) is None
    assert found(where, pods(where, x=2, required=RACK)) == [{"z": 2}]
    assert found(flavors(y=("r", 1), z=("s", 4)), pods(where, x=1, y=1, preferred=RACK)) is not None


def test_another_node_that_is_gone_fails_the_replacement() -> None:
    """The pod set stands on y, too, which is not there any more; another pod set may."""
    where = flavors(z=("s", 9))
    assert found(where, pods(where, x=1, y=1, unconstrained=True)) is None
    after = found(where, pods(where, x=1, unconstrained=True), pods(where, "other", y=1, unconstrained=True))
    assert after == [{"z": 1}, {"y": 1}]


def test_a_broken_slice_is_made_whole_in_its_rack() -> None:
    """Slices of two in a rack: the pod that lost x joins the one on y, though rack s has more room."""
    where = flavors(y=("r", 2), z=("s", 9), v=("r", 1))
    assert found(where, pods(where, slices=2, x=1, y=1, z=2, required=RACK)) == [{"v": 1, "y": 1, "z": 2}]
    whole = found(flavors(y=("r", 2), z=("s", 9)), pods(where, slices=2, x=1, y=1))
    assert whole is None  # no layer is left, and a request of slices alone names no level then
    where = flavors(y=("r", 2), z=("s", 9))
    assert found(where, pods(where, slices=2, x=1, y=1, unconstrained=True)) == [{"y": 2}]  # `levelKey`


def test_pod_sets_see_what_those_before_them_took() -> None:
    """Each of two pod sets lost one pod, and only one host has room for two."""
    where = flavors(y=("r", 1), z=("r", 1))
    ones = [pods(where, name, x=1, unconstrained=True) for name in ("a", "b")]
    assert found(where, *ones) == [{"y": 1}, {"z": 1}]
    only = flavors(y=("r", 1))
    assert found(only, *[pods(only, name, x=1, unconstrained=True) for name in ("a", "b")]) is None


def test_what_is_added_is_what_a_leaf_has_more_of() -> None:
    """A second pass asks for that alone."""
    where = flavors(y=("r", 9), z=("r", 9))
    before, after = pods(where, y=2), pods(where, y=3, z=1)
    assert [each.domains for each in added([after], [before])] == [((("y",), 1), (("z",), 1))]


def test_usage_stays_with_a_name_while_its_node_is_away() -> None:
    """It takes room again as soon as a node of that name is back, be it in another rack."""
    before = flavors(x=("r", 4))
    placed = pods(before, x=3)
    away, back = flavors(y=("r", 4)), flavors(x=("s", 4))
    gone = away.now([placed])
    away.hold(gone)
    assert away.by_name["f"].room["gpu"] == [4]
    returned = back.now(gone)
    back.hold(returned)
    assert back.by_name["f"].room["gpu"] == [1]
    assert returned[0].domains == placed.domains
