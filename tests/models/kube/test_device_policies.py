"""Policies for shared GPUs: nodes, devices and fragmentation by brute force and by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from more_examples import examples

from harness.cluster.devices import GPU_COUNT, MILLI_GPU
from harness.cluster.kinds.pods import PodSpec
from harness.cluster.kinds.scheduler_configuration import DevicePlacement, SchedulerConfiguration
from harness.cluster.model import Cluster, Node, frozen
from harness.models.kube.cache import Cache
from harness.models.kube.devices import Ask
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.device_policies import device_policy
from harness.models.kube.placement.fragmentation import Fragmentation, Usual, most_frequent
from harness.models.kube.placement.scheduling import scheduling_of
from harness.models.kube.pod import PodInfo, Templates

MODEL = "nvidia.com/gpu.product"
AMOUNTS = (0, 100, 300, 500, 700, 1000, 1000, 2000)
PODS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(AMOUNTS), st.sampled_from(("", "", "T4"))),
    min_size=1,
    max_size=8,
)
NODES = st.lists(
    st.tuples(st.integers(2, 9), st.integers(1, 3), st.sampled_from(("T4", "P4"))), min_size=1, max_size=3
)


class Machines:
    """Small nodes under one policy."""

    def __init__(
        self, policy: str, nodes: Sequence[tuple[int, int, str]], *, seed: int | None = None
    ) -> None:
        made = [
            Node(
                f"n{number}",
                frozen({"cpu": 1000 * cpu, MILLI_GPU: 1000 * gpus}),
                frozen({GPU_COUNT: str(gpus), MODEL: model}),
            )
            for number, (cpu, gpus, model) in enumerate(nodes)
        ]
        self.cache = Cache(Cluster(nodes=frozen({node.name: node for node in made})))
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())
        configuration = SchedulerConfiguration(devices=DevicePlacement(policy, seed))
        self.scheduling = scheduling_of(self.cache, self.templates, configuration)
        self._made = 0

    def pod(self, cpu: int, amount: int, model: str = "") -> PodInfo:
        """A pod that waits."""
        self._made += 1
        selector = frozen({MODEL: model} if model else {})
        spec = PodSpec(
            frozen({"cpu": 1000 * cpu, MILLI_GPU: amount}), scored_cpu=1000 * cpu, node_selector=selector
        )
        return PodInfo(f"p{self._made}", self.templates.of("default", {}, spec), 0, preempts=True)

    def bind(self, pod: PodInfo) -> NodeInfo | None:
        """Bind a pod where the policy puts it."""
        found = self.scheduling.schedule(pod)
        if not isinstance(found, NodeInfo):
            return None
        self.cache.add_pod(pod, found)
        return found

    def nodes(self) -> list[NodeInfo]:
        """All nodes."""
        return list(self.cache.nodes)


def choices(left: Sequence[int], amount: int) -> list[tuple[int, ...]]:
    """All devices that a pod could get."""
    if not amount:
        return [()]
    number, share = (amount // 1000, 1000) if amount % 1000 == 0 else (1, amount)
    return [each for each in combinations(range(len(left)), number) if all(left[i] >= share for i in each)]


def without(left: Sequence[int], taken: Sequence[int], amount: int) -> list[int]:
    """What is left of devices when some are taken."""
    share = amount if amount % 1000 else 1000
    return [has - share * (device in taken) for device, has in enumerate(left)]


def fragments(cpu: int, left: Sequence[int], model: str, usual: Sequence[tuple[int, int, str]]) -> int:
    """FGD's definition, pod by pod, of a node with so much left."""
    found = 0
    for wants_cpu, amount, wants_model in usual:
        share = amount if amount % 1000 else 1000
        runs = wants_model in ("", model) and wants_cpu <= cpu and amount and choices(left, amount)
        found += sum(has for has in left if has < share) if runs else sum(left)
    return found


@given(
    cpu=st.integers(0, 5),
    left=st.lists(st.sampled_from((0, 200, 300, 500, 1000)), min_size=1, max_size=4),
    model=st.sampled_from(("T4", "P4")),
    usual=PODS,
)
@settings(deadline=None)
def test_fragmentation_is_what_its_definition_says(
    cpu: int, left: list[int], model: str, usual: list[tuple[int, int, str]]
) -> None:
    """Pod by pod, where no kind of pod is so rare that it is left out."""
    machines = Machines("binpack", [(9, 4, model)])
    pods = [machines.pod(*each).template for each in usual]
    kinds = Counter(pods)
    measure = Fragmentation(
        Usual(count, kind.shape.scored_cpu, kind.shape.device, kind.spec) for kind, count in kinds.items()
    )
    node = machines.nodes()[0].manifest
    assert measure.total == len(usual)
    assert measure.of(node, 1000 * cpu, left) == fragments(cpu, left, model, usual)


@given(nodes=NODES, usual=PODS)
@examples(60)
def test_fgd_takes_the_node_and_the_device_whose_fragments_grow_least(
    nodes: list[tuple[int, int, str]], usual: list[tuple[int, int, str]]
) -> None:
    """Every choice of every node is tried; of equals the first node by name, and its first device."""
    machines = Machines("fgd", nodes)
    for pod, (cpu, amount, wants) in [(machines.pod(*each), each) for each in usual]:
        best: tuple[int, str, tuple[int, ...]] | None = None
        for node, (_, _, model) in zip(machines.nodes(), nodes, strict=True):
            has, left = node.free[0] // 1000, list(node.devices)
            if wants not in ("", model) or cpu > has:
                continue
            before = fragments(has, left, model, usual)
            for taken in choices(left, amount):
                after = fragments(has - cpu, without(left, taken, amount), model, usual)
                gain = int(100.0 / (1.0 + exp(-((before - after) / len(usual)) / 1000)))
                if best is None or (-gain, node.name, taken) < (-best[0], best[1], best[2]):
                    best = gain, node.name, taken
        there = machines.bind(pod)
        assert (there is None) == (best is None)
        if there is not None and best is not None:
            assert (there.name, pod.devices) == best[1:]


@given(nodes=NODES, usual=PODS)
@examples(60)
def test_best_fit_leaves_least_of_processors_and_gpus(
    nodes: list[tuple[int, int, str]], usual: list[tuple[int, int, str]]
) -> None:
    """Each as a part of the most that any node has; then the tightest device, and the first of equals."""
    machines = Machines("best-fit", nodes)
    most_cpu, most_gpu = max(node[0] for node in nodes), 1000 * max(node[1] for node in nodes)
    for cpu, amount, wants in usual:
        pod, found = machines.pod(cpu, amount, wants), []
        for node, (_, _, model) in zip(machines.nodes(), nodes, strict=True):
            has, left = node.free[0] // 1000, list(node.devices)
            if wants in ("", model) and cpu <= has and choices(left, amount):
                rest = 0.5 * (has - cpu) / most_cpu + 0.5 * (sum(left) - amount) / most_gpu
                tight = min(choices(left, amount), key=lambda taken: [left[each] for each in taken])
                found.append((100 * (1 - rest), node.name, tight))
        there = machines.bind(pod)
        assert (there is None) == (not found)
        if there is not None:
            mine = next(each for each in found if each[1] == there.name)
            assert mine[0] > max(found)[0] - 1  # scores are whole numbers
            assert pod.devices == mine[2]


def test_rare_kinds_of_pods_do_not_count() -> None:
    """The most frequent ones until they are 95 % of all, the larger ones of equals first."""
    spec = PodSpec()
    kinds = [
        Usual(90, 1, Ask(1, 500), spec),
        Usual(4, 1, None, spec),
        Usual(4, 2, None, spec),
        Usual(2, 9, None, spec),
    ]
    assert [(each.pods, each.cpu) for each in most_frequent(kinds)] == [(90, 1), (4, 2), (4, 1)]


def test_packing_shares_first_and_opens_idle_nodes_last() -> None:
    """A used device, then an idle one of a node with pods, then a node without; the smaller of such nodes."""
    machines = Machines("packing", [(9, 3, ""), (9, 2, "")])
    where = [machines.bind(pod := machines.pod(1, amount)) for amount in (600, 300, 1000, 700, 1000)]
    assert [node.name for node in where if node is not None] == ["n1", "n1", "n1", "n0", "n0"]
    assert pod.devices == (1,)


def test_clustering_puts_pods_of_one_kind_together() -> None:
    """Shares with shares and pairs with pairs, though the other node is fuller."""
    machines = Machines("clustering", [(9, 4, ""), (9, 4, "")])
    first, pair, share = (machines.bind(machines.pod(1, amount)) for amount in (300, 2000, 300))
    assert first is share
    assert pair is not first
    assert machines.bind(machines.pod(1, 2000)) is pair


def test_the_dot_product_takes_nodes_with_little_left_of_what_is_asked_for() -> None:
    """A pod of many GPUs goes where few are, one of many processors where few of those are."""
    machines = Machines("dot-product", [(8, 2, ""), (4, 3, "")])
    assert getattr(machines.bind(machines.pod(1, 2000)), "name", "") == "n0"
    assert getattr(machines.bind(machines.pod(4, 100)), "name", "") == "n1"


def test_spread_takes_the_device_with_most_left() -> None:
    """Where binpack, which happens with nothing said, fills one device."""
    for policy, devices in (("spread", [(0,), (1,), (0,)]), ("binpack", [(0,), (0,), (0,)])):
        machines = Machines(policy, [(9, 2, "")])
        pods = [machines.pod(1, 300) for _ in range(3)]
        assert all(machines.bind(pod) is not None for pod in pods)
        assert [pod.devices for pod in pods] == devices


def test_random_takes_any_node_with_room_and_any_device_the_same_for_a_seed() -> None:
    """Evenly, and never where a pod does not fit."""

    def placed(seed: int) -> list[tuple[str, tuple[int, ...]]]:
        machines = Machines("random", [(90, 2, "")] * 4 + [(0, 2, "")], seed=seed)
        found = []
        for _ in range(200):
            node = machines.bind(pod := machines.pod(1, 300))
            assert node is not None
            found.append((node.name, pod.devices))
            machines.cache.remove_pod(pod)
        return found

    counts = Counter(placed(1))
    assert {name for name, _ in counts} == {"n0", "n1", "n2", "n3"}
    assert len(counts) == 8
    assert max(counts.values()) < 3 * min(counts.values()) < 200
    assert placed(1) == placed(1) != placed(2)


def test_a_seed_draws_the_order_of_equal_nodes() -> None:
    """Without one the first by name is taken."""
    taken = {
        seed: getattr(
            (m := Machines("best-fit", [(9, 2, "")] * 6, seed=seed)).bind(m.pod(1, 300)), "name", ""
        )
        for seed in (None, 1, 2, 3, 4, 5)
    }
    assert taken[None] == "n0"
    assert len(set(taken.values())) > 2


def test_fgd_counts_pods_anew_whenever_they_have_doubled() -> None:
    """It knows at its first decision all that there are, and learns of others later."""
    machines = Machines("fgd", [(9, 2, "")])
    policy = device_policy(DevicePlacement("fgd"), machines.templates)
    assert policy is not None
    learned = []
    for _ in range(9):
        machines.pod(1, 300)
        learned.append(policy.learn())
    assert learned == [True, True, False, True, False, False, False, True, False]


@pytest.mark.parametrize(
    "policy", ["binpack", "spread", "best-fit", "dot-product", "packing", "clustering", "fgd"]
)
def test_pods_without_gpus_are_placed_by_every_policy(policy: str) -> None:
    """On nodes without any, too."""
    machines = Machines(policy, [(2, 1, ""), (2, 1, "")])
    assert [machines.bind(machines.pod(1, 0)) is not None for _ in range(5)] == [True] * 4 + [False]
