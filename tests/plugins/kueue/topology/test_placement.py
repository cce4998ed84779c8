"""Placement in a topology: its rules by name, and against all assignments that there are of small worlds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from harness.base.pod_set import SliceLayer, TopologyRequest
from harness.cluster.kinds.selectors import Taint
from harness.cluster.kinds.topology import Topology
from harness.cluster.model import Node, ResourceFlavor, frozen
from harness.policy import PodSet
from harness_plugins.kueue.rules.topology.placement import PodSetRequest, place
from harness_plugins.kueue.state.topology.tree import Room, TopologyTree

BLOCK, RACK, HOST = "block", "rack", "kubernetes.io/hostname"
LEVELS = Topology("t", (BLOCK, RACK, HOST))
FLAVOR = ResourceFlavor("gpu")


def node(name: str, gpus: int, *, block: str = "b0", rack: str = "r0", **fields: tuple[Taint, ...]) -> Node:
    """A node with room for ten pods."""
    labels = frozen({BLOCK: block, RACK: rack, HOST: name})
    return Node(name, frozen({"gpu": gpus, "pods": 10}), labels, **fields)


def tree(*nodes: Node, topology: Topology = LEVELS) -> TopologyTree:
    """The topology over these nodes."""
    return TopologyTree(topology, FLAVOR, nodes)


def workers(count: int, name: str = "workers", gpus: int = 1, **request: object) -> PodSetRequest:
    """Pods of so many GPUs each."""
    pod_set = PodSet(name, count, count, frozen({"gpu": gpus}))
    return PodSetRequest(pod_set, count, TopologyRequest(**request))  # type: ignore[arg-type]


def placed(
    where: TopologyTree, *asked: PodSetRequest, mixed: bool = True
) -> dict[str, dict[str, int] | None]:
    """Pod set -> host -> pods; None for a pod set that cannot be placed."""
    hosts = [where.values[leaf][-1] for leaf in where.leaves]
    found = place(where, Room(where.allocatable), asked, mixed=mixed)
    return {
        name: None if shares is None else {hosts[leaf]: pods for leaf, pods in shares}
        for name, shares in found.items()
    }


RACKS = tree(
    node("a", 2, rack="r0"),
    node("b", 2, rack="r0"),
    node("c", 3, rack="r1"),
    node("d", 8, block="b1", rack="r0"),
)


def test_best_fit_takes_the_smallest_rack_that_has_room() -> None:
    """Three pods fit the rack of 3, the rack of 4 and the rack of 8."""
    assert placed(RACKS, workers(3, required=RACK)) == {"workers": {"c": 3}}


def test_preferred_climbs_where_no_rack_has_room_and_required_does_not() -> None:
    """Ten pods fit no rack; all blocks together they do."""
    assert placed(RACKS, workers(10, required=RACK)) == {"workers": None}
    assert placed(RACKS, workers(10, preferred=RACK)) == {"workers": {"c": 2, "d": 8}}


def test_what_may_be_anywhere_fills_up_what_is_nearly_full() -> None:
    """Unless the gate is off: then it goes where it fits best too, which for two pods is a host of 2."""
    assert placed(RACKS, workers(1, unconstrained=True)) == {"workers": {"a": 1}}
    assert placed(tree(node("x", 5), node("y", 4)), workers(5, unconstrained=True)) == {"workers": {"x": 5}}
    assert placed(tree(node("x", 5), node("y", 4)), workers(9)) == {"workers": {"x": 5, "y": 4}}


def test_a_slice_is_in_one_domain_and_what_makes_no_slice_is_left_out() -> None:
    """Slices of 2 in a host each: 7 pods are 3 of them, and the host of 3 takes one."""
    sliced = workers(7, required=BLOCK, slices=(SliceLayer(HOST, 2),))
    assert placed(tree(node("a", 3), node("b", 4)), sliced) == {"workers": {"a": 2, "b": 4}}


def test_layers_that_do_not_nest_and_levels_that_are_not_there_fail() -> None:
    """The inner layer has to be finer and to divide the outer one."""
    for slices in ((SliceLayer(RACK, 4), SliceLayer(HOST, 3)), (SliceLayer(HOST, 4), SliceLayer(RACK, 2))):
        assert placed(RACKS, workers(4, slices=slices)) == {"workers": None}
    assert placed(RACKS, workers(1, required="zone")) == {"workers": None}
    assert placed(RACKS, workers(1, required=HOST, slices=(SliceLayer(RACK, 1),))) == {"workers": None}


def test_a_leader_is_placed_with_its_workers_and_only_once() -> None:
    """The larger pod set are the workers; the leader's request counts beside theirs."""
    leader = workers(1, "leader", 2, required=RACK, group="g")
    found = placed(RACKS, leader, workers(2, required=RACK, group="g"))
    assert found == {"workers": {"b": 2}, "leader": {"a": 1}} or found == {
        "workers": {"a": 2},
        "leader": {"b": 1},
    }
    assert placed(tree(node("a", 3)), leader, workers(2, required=RACK, group="g")) == {
        "workers": None,
        "leader": None,
    }


def test_pod_sets_see_what_those_before_them_took_and_a_failure_ends_the_search() -> None:
    """The third is never looked at."""
    small = tree(node("a", 4))
    assert placed(small, workers(3, "one"), workers(2, "two"), workers(1, "three")) == {
        "one": {"a": 3},
        "two": None,
    }


def test_taints_count_only_where_leaves_are_hosts() -> None:
    """A rack is a set of nodes, of which none is looked at by itself."""
    tainted = node("a", 4, taints=(Taint("k", "v", "NoSchedule"),))
    assert placed(tree(tainted), workers(1)) == {"workers": None}
    by_rack = tree(tainted, topology=Topology("t", (BLOCK, RACK)))
    assert placed(by_rack, workers(1)) == {"workers": {"r0": 1}}


def test_a_node_without_a_label_of_a_level_is_in_no_domain() -> None:
    """Nor is one that may not be scheduled to."""
    bare = Node("a", frozen({"gpu": 4, "pods": 10}), frozen({HOST: "a"}))
    closed = Node(
        "b", frozen({"gpu": 4, "pods": 10}), frozen({BLOCK: "b", RACK: "r", HOST: "b"}), unschedulable=True
    )
    assert placed(tree(bare, closed), workers(1)) == {"workers": None}


def test_a_node_that_does_not_say_how_many_pods_it_takes_takes_any_number() -> None:
    """As in a replay with nodes."""
    bare = Node("a", frozen({"gpu": 500}), frozen({BLOCK: "b0", RACK: "r0", HOST: "a"}))
    assert placed(tree(bare), workers(400, required=HOST)) == {"workers": {"a": 400}}


def test_what_runs_already_leaves_less_room_and_may_leave_less_than_none() -> None:
    """A leaf below zero takes nobody, and nothing of it is taken from others."""
    where = tree(node("a", 2), node("b", 2))
    room = Room(where.allocatable)
    room.take(0, {"gpu": 5}, 1)
    assert place(where, room, [workers(2)], mixed=True) == {"workers": ((1, 2),)}


# --- against every assignment -----------------------------------------------------------------------------


class World(NamedTuple):
    """Up to five hosts in racks in blocks, and one pod set."""

    hosts: tuple[tuple[str, str, int], ...]
    count: int
    level: str
    required: bool

    def tree(self) -> TopologyTree:
        return tree(
            *(
                node(f"h{at}", gpus, block=block, rack=rack)
                for at, (block, rack, gpus) in enumerate(self.hosts)
            )
        )

    def assignments(self) -> Iterator[tuple[int, ...]]:
        """All ways to share the pods out that no host is too small for."""
        rooms = (range(gpus + 1) for _, _, gpus in self.hosts)
        return (each for each in product(*rooms) if sum(each) == self.count)

    def domain(self, host: int) -> tuple[str, ...]:
        """What of the level a host is in."""
        block, rack, _ = self.hosts[host]
        return {BLOCK: (block,), RACK: (block, rack), HOST: (block, rack, f"h{host}")}[self.level]

    def spans(self, assignment: tuple[int, ...]) -> set[tuple[str, ...]]:
        """The domains of the level that get a pod."""
        return {self.domain(host) for host, pods in enumerate(assignment) if pods}

    def capacity(self, domain: tuple[str, ...]) -> int:
        """How many pods a domain of the level takes."""
        return sum(gpus for host, (_, _, gpus) in enumerate(self.hosts) if self.domain(host) == domain)


WORLDS = st.builds(
    World,
    st.lists(
        st.tuples(st.sampled_from(["b0", "b1"]), st.sampled_from(["r0", "r1"]), st.integers(0, 4)),
        min_size=1,
        max_size=5,
    ).map(tuple),
    st.integers(1, 8),
    st.sampled_from([BLOCK, RACK, HOST]),
    st.booleans(),
)


@given(WORLDS)
def test_a_placement_is_one_of_all_that_there_are_and_none_wastes_less(world: World) -> None:
    """There is one exactly where some assignment keeps the rule; in one domain it is the tightest of them."""
    how = {"required" if world.required else "preferred": world.level}
    found = placed(world.tree(), workers(world.count, **how))["workers"]
    every = list(world.assignments())
    single = [each for each in every if len(world.spans(each)) == 1]
    if not (single if world.required else every):
        assert found is None
        return
    assert found is not None
    chosen = tuple(found.get(f"h{at}", 0) for at in range(len(world.hosts)))
    assert chosen in every
    if single:
        (domain,) = world.spans(chosen)
        tightest = min(world.capacity(*world.spans(each)) for each in single)
        assert world.capacity(domain) == tightest
