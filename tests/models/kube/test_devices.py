"""GPUs as devices: who fits, on which devices, in dry runs and when nodes lose some; by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.cluster.devices import GPU, GPU_COUNT, MILLI_GPU, device_count, thousandths
from harness.cluster.kinds.pods import PodSpec
from harness.cluster.model import Cluster, Node, frozen
from harness.models.kube.cache import Cache
from harness.models.kube.devices import Ask, ask_of, tightest
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.shape_nodes import never
from harness.models.kube.placement.trial import NOTHING, Trial
from harness.models.kube.pod import PodInfo, Templates

SHARES = (100, 250, 300, 400, 500, 600, 700, 1000, 1000, 2000, 3000)
ASKS = st.lists(st.sampled_from(SHARES), min_size=1, max_size=9)


def machine(name: str, devices: int, gpus: int | None = None) -> Node:
    """A node with room for any number of processors."""
    amounts = {"cpu": 10**6, MILLI_GPU: 1000 * (devices if gpus is None else gpus)}
    return Node(name, frozen(amounts), frozen({GPU_COUNT: str(devices)} if devices else {}))


class Nodes:
    """Nodes on which pods can be tried."""

    def __init__(self, *nodes: Node) -> None:
        self.cache = Cache(Cluster(nodes=frozen({node.name: node for node in nodes})))
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())
        self.scheduling = Scheduling(self.cache)
        self._made = 0

    def pod(self, amount: int, resource: str = MILLI_GPU) -> PodInfo:
        """A pod that asks for so much."""
        self._made += 1
        spec = PodSpec(frozen({"cpu": 1000, resource: amount}))
        return PodInfo(f"p{self._made}", self.templates.of("default", {}, spec), 0, preempts=True)

    def bind(self, pod: PodInfo) -> NodeInfo | None:
        """Bind a pod where it fits; None where it fits nowhere."""
        found = self.scheduling.schedule(pod)
        if not isinstance(found, NodeInfo):
            return None
        self.cache.add_pod(pod, found)
        return found


def fits(free: Sequence[int], amount: int) -> bool:
    """Whether devices with so much left take a pod: tried with each choice of devices."""
    number, share = (amount // 1000, 1000) if amount % 1000 == 0 else (1, amount)
    return any(all(left >= share for left in chosen) for chosen in combinations(free, number))


@given(devices=st.integers(1, 4), asked=ASKS, gone=st.lists(st.integers(0, 8), max_size=4))
@examples(150)
def test_a_pod_fits_where_some_choice_of_devices_has_room(
    devices: int, asked: list[int], gone: list[int]
) -> None:
    """And then every device has what its pods leave of it, never less than nothing, whoever has gone."""
    nodes = Nodes(machine("a", devices))
    (node,) = nodes.cache.nodes
    pods: list[PodInfo] = []
    for number, amount in enumerate(asked):
        pod, free = nodes.pod(amount), list(node.devices)
        there = nodes.bind(pod)
        assert (there is node) == fits(free, amount)
        if there is not None:
            pods.append(pod)
            assert pod.devices == tightest(free, Ask(max(1, amount // 1000), min(amount, 1000)))
        if number in gone and pods:
            nodes.cache.remove_pod(pods.pop(0))
        held = [0] * devices
        for each in pods:
            for device in each.devices:
                assert each.template.shape.device is not None
                held[device] += each.template.shape.device.share
        assert node.devices == [1000 - amount for amount in held]
        assert min(node.devices) >= 0


@given(free=st.lists(st.sampled_from((0, 100, 300, 500, 700, 1000)), min_size=1, max_size=6))
def test_the_tightest_device_is_the_one_with_least_left_after_it(free: list[int]) -> None:
    """The first one of equals; of whole ones the first."""
    for share in (100, 250, 300, 500, 1000):
        enough = [device for device, left in enumerate(free) if left >= share]
        if enough:
            best = min(enough, key=lambda device: (free[device] - share, device))
            assert tightest(free, Ask(1, share)) == (best,)


@given(
    devices=st.integers(1, 3), there=ASKS, wanted=st.sampled_from(SHARES), nominated=st.sampled_from(SHARES)
)
@examples(150)
def test_a_dry_run_finds_what_the_devices_would_have_left(
    devices: int, there: list[int], wanted: int, nominated: int
) -> None:
    """With a nominated pod put there and taken away, and bound pods taken away and put back."""
    nodes = Nodes(machine("a", devices))
    (node,) = nodes.cache.nodes
    bound = [pod for pod in map(nodes.pod, there) if nodes.bind(pod) is node]
    trial, other = Trial(nodes.pod(wanted), node, NOTHING, nodes.cache.names), nodes.pod(nominated)
    assert trial.fits() == fits(node.devices, wanted) == (trial.filter() is None)
    if fits(node.devices, nominated):
        trial.add(other)
        trial.remove(other)
    for number, pod in enumerate(bound):
        trial.remove(pod)
        assert trial.fits() == fits(node.devices_without(bound[: number + 1]), wanted)
    for pod in bound:
        trial.add(pod)
    assert trial.fits() == fits(node.devices, wanted)


def test_two_halves_are_no_room_for_more_than_a_half() -> None:
    """The sum would be enough, no device is; and the reason says so."""
    nodes = Nodes(machine("a", 2))
    for amount in (500, 600, 400):
        assert nodes.bind(nodes.pod(amount)) is not None
    (node,) = nodes.cache.nodes
    assert node.devices == [500, 0]
    nodes.bind(first := nodes.pod(300))
    nodes.cache.remove_pod(first)
    refused = nodes.scheduling.schedule(nodes.pod(600))
    assert not isinstance(refused, NodeInfo)
    assert refused.status(node).reasons == (f"Insufficient {MILLI_GPU}", "Insufficient share of one GPU")
    whole = nodes.scheduling.schedule(nodes.pod(1, GPU))
    assert not isinstance(whole, NodeInfo)


def test_more_than_one_device_is_asked_for_in_whole_ones() -> None:
    """As Koordinator refuses it: one and a half fit no node, however empty it is."""
    nodes = Nodes(machine("a", 8))
    assert nodes.bind(nodes.pod(1500)) is None
    shape = nodes.pod(1500).template.shape
    assert never(shape, nodes.cache.nodes[0], nodes.cache.names) == ("Insufficient share of one GPU",)


def test_resources_of_real_clusters_mean_parts_of_a_device() -> None:
    """Koordinator's are percent; where several say it the most counts."""
    assert thousandths({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 60}) == 600
    assert ask_of({GPU: 2}) == Ask(2, 1000)
    assert ask_of({"koordinator.sh/gpu": 200}) == Ask(2, 1000)
    assert ask_of({"cpu": 5, GPU: 0}) is None
    assert device_count(Node("k", frozen({"koordinator.sh/gpu-core": 800}))) == 8
    assert device_count(Node("n", frozen({MILLI_GPU: 8000}))) == 0
    assert device_count(machine("n", 8, gpus=7)) == 7


def test_without_a_node_with_devices_nothing_is_there_that_counts_them() -> None:
    """Neither a resource nor an ask."""
    nodes = Nodes(machine("a", 0, gpus=2))
    assert nodes.cache.names == ["cpu", "memory", MILLI_GPU]
    pod = nodes.pod(600)
    assert pod.template.shape.device is None
    assert pod.template.shape.requests is pod.template.shape.amounts
    assert nodes.bind(nodes.pod(300)) is not None
    assert nodes.bind(pod) is not None
    assert pod.devices == ()


def test_where_others_have_devices_a_node_without_takes_whole_gpus_alone() -> None:
    """Which part of which of its GPUs a share would be nobody could say."""
    nodes = Nodes(machine("counted", 0, gpus=2), machine("small", 1))
    assert nodes.bind(share := nodes.pod(500)) is nodes.cache.by_name["small"]
    assert share.devices == (0,)
    assert nodes.bind(nodes.pod(2000)) is nodes.cache.by_name["counted"]
    assert nodes.bind(nodes.pod(600)) is None


def test_a_node_that_loses_devices_keeps_its_pods_and_takes_none_more_there() -> None:
    """What is left of the others can be used, and all of it again once the devices are back."""
    nodes = Nodes(machine("a", 3), machine("b", 1))
    node = nodes.cache.by_name["a"]
    pods = [nodes.pod(amount) for amount in (700, 700, 700)]
    for pod in pods:
        nodes.cache.add_pod(pod, node)
    assert [pod.devices for pod in pods] == [(0,), (1,), (2,)]
    nodes.cache.put(machine("a", 1))
    assert node.devices == [300, -700, -700]
    assert node.free[nodes.cache.resources["share of one GPU"]] == 300
    nodes.cache.remove_pod(pods[0])
    assert node.free[nodes.cache.resources["whole GPU"]] == 1
    nodes.cache.put(machine("a", 0))
    assert [pod.devices for pod in pods] == [(), (), ()]
    nodes.cache.put(machine("a", 2))
    assert sorted(pod.devices for pod in pods[1:]) == [(0,), (1,)]
    assert node.devices == [300, 300]


def test_slices_of_gpus_are_whole_and_counted_by_their_profile() -> None:
    """A static partition with MIG: each profile is a resource, beside devices that are shared."""
    small, large = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
    amounts = {"cpu": 10**6, MILLI_GPU: 1000, small: 2, large: 1}
    nodes = Nodes(Node("a", frozen(amounts), frozen({GPU_COUNT: "1"})))
    assert [nodes.bind(nodes.pod(1, each)) is not None for each in (small, small, small, large, large)] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert nodes.cache.nodes[0].devices == [1000]
    assert nodes.bind(nodes.pod(600)) is not None


def test_alibabas_resources_are_shares_and_whole_devices() -> None:
    """As many as are counted, if so many thousandths are offered; the larger of two requests counts."""
    milli, count = "alibabacloud.com/gpu-milli", "alibabacloud.com/gpu-count"
    assert ask_of({milli: 460}) == Ask(1, 460)
    assert ask_of({milli: 2000}) == ask_of({count: 2}) == Ask(2, 1000)
    assert device_count(Node("a", frozen({count: 2, milli: 2000}))) == 2
    assert device_count(Node("a", frozen({count: 2, milli: 1000}))) == 1
    assert device_count(Node("a", frozen({milli: 2000}))) == device_count(Node("a", frozen({count: 2}))) == 0
