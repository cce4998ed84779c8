"""What is kept of capacities is what counting them again gives, whatever happened to the room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.kinds.topology import Topology
from harness.cluster.model import Node, ResourceFlavor, frozen
from harness_plugins.kueue.rules.topology.capacity import PodsToPlace, capacity_of
from harness_plugins.kueue.rules.topology.request import Wanted
from harness_plugins.kueue.shortcuts.kept_capacities import KeptCapacities
from harness_plugins.kueue.state.topology.tree import Room, TopologyTree

LEVELS = ("block", "rack", "kubernetes.io/hostname")
HOSTS = [(f"b{host // 6}", f"r{host // 2 % 3}", f"h{host:02}") for host in range(12)]
TREE = TopologyTree(
    Topology("t", LEVELS),
    ResourceFlavor("f"),
    [
        Node(each[-1], frozen({"gpu": 8, "cpu": 9, "pods": 6}), frozen(dict(zip(LEVELS, each, strict=True))))
        for each in HOSTS
    ],
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Wanted, dict[str, int], tuple[bool, ...] | None]:
    """Slices of some level, pods kept together below it, requests, and hosts that the pods may run on."""
    slice_level, size = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    inner = {level: draw(st.integers(1, 3)) for level in range(slice_level + 1, 3) if draw(st.booleans())}
    worker = draw(st.dictionaries(st.sampled_from(["gpu", "cpu", "tpu"]), st.integers(0, 4)))
    suitable = draw(st.none() | st.tuples(*[st.booleans()] * len(HOSTS)))
    return Wanted(0, slice_level, size, inner, False, False, False), worker, suitable


@given(
    st.lists(questions(), min_size=1, max_size=3),
    st.lists(
        st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["gpu", "cpu", "tpu"]), st.integers(-3, 5))),
        max_size=6,
    ),
)
def test_what_is_kept_is_what_counting_again_gives(
    asked: list[tuple[Wanted, dict[str, int], tuple[bool, ...] | None]],
    changes: list[list[tuple[int, str, int]]],
) -> None:
    """After each few changes of the room; what a search does to figures is not seen by the next one."""
    room, kept = Room(TREE.allocatable, lasts=True), KeptCapacities(capacity_of)
    for some in [[], *changes]:
        for leaf, resource, amount in some:
            room.take(leaf, {resource: amount}, 1 if amount > 0 else -1)
        for wanted, worker, suitable in asked:
            pods = PodsToPlace(TREE, room, wanted, worker, None, suitable)
            found, again = kept(pods), capacity_of(pods)
            for name in ("pods", "pods_with", "slices", "slices_with", "leaders"):
                assert getattr(found, name) == getattr(again, name), name
            found.pods[0] = found.slices[0] = found.leaders[0] = 99
