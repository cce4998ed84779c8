"""GPUs cut into slices with MIG: which slices GPUs can hold, and what `harness cluster check` says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness.base.errors import ClusterError, InputError
from harness.cli.cluster import cluster
from harness.cluster.changes.over_time import unrolled
from harness.cluster.load import cluster_from
from harness.cluster.mig import MODELS, PRODUCT, Model, Profile, partition_of, profile_of
from harness.cluster.model import Node, frozen

SMALL, PAIR, HALF = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb"
A100 = "NVIDIA-A100-SXM4-40GB"

STARTS = {
    7: {
        (1, 1): range(7),
        (1, 2): (0, 2, 4, 6),
        (2, 2): (0, 2, 4),
        (3, 4): (0, 4),
        (4, 4): (0,),
        (7, 8): (0,),
    },
    4: {(1, 1): range(4), (2, 2): (0, 2), (4, 4): (0,)},
}
"""Compute slices of a GPU -> those and units of memory of a profile -> where it begins, by `nvidia-smi`."""


def node(product: str | None, count: str | None, /, name: str = "a", **amounts: int) -> Node:
    """A node with labels of NVIDIA's feature discovery; amounts have names such as `g1_5`, of 1g.5gb."""
    labels = {PRODUCT: product, "nvidia.com/gpu.count": count}
    has = {
        f"nvidia.com/mig-{key[1:].replace('_', 'g.')}gb" if key != "gpu" else "nvidia.com/gpu": each
        for key, each in amounts.items()
    }
    return Node(name, frozen(has), frozen({key: each for key, each in labels.items() if each is not None}))


def manifest(name: str = "a", labels: Mapping[str, str] | None = None, **allocatable: Any) -> dict[str, Any]:
    """A Node as kubectl prints it."""
    own = {PRODUCT: A100, "nvidia.com/gpu.count": "2"} if labels is None else labels
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(own)},
        "status": {"allocatable": {"cpu": 9, "pods": 99, **allocatable}},
    }


def check(*manifests: Mapping[str, Any], as_json: bool = False) -> Result:
    """What `harness cluster check` says."""
    args = ["check", *(["--json"] if as_json else []), "-"]
    return CliRunner().invoke(cluster, args, input=yaml.safe_dump_all(manifests))


def refused(*manifests: Mapping[str, Any]) -> str:
    """The sentences of the error with which it refuses manifests."""
    error = check(*manifests).exception
    assert isinstance(error, InputError)
    return str(error)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        (SMALL, Profile(1, 5)),
        ("nvidia.com/mig-7g.80gb", Profile(7, 80)),
        ("nvidia.com/mig-1g.5gb.me", Profile(1, 5, media=True)),
        ("nvidia.com/mig-1g.5gb+me", Profile(1, 5, media=True)),
        ("nvidia.com/mig-0g.0gb", None),
        ("nvidia.com/mig-1g.0gb", None),
        ("nvidia.com/mig-1g.5gb.gfx", None),
        ("nvidia.com/mig-1c.3g.20gb", None),
        ("nvidia.com/mig-", None),
        ("nvidia.com/mig-99999999999g.5gb", None),
        ("nvidia.com/gpu", None),
    ],
)
def test_a_resource_says_the_compute_slices_and_the_memory_of_its_slices(name: str, profile: Any) -> None:
    """Names of other forms say nothing: slices of compute instances, graphics, and nonsense."""
    assert profile_of(name) == profile
    if profile is not None:
        assert profile_of(f"nvidia.com/mig-{profile}") == profile


@cache
def layouts(model: Model) -> frozenset[tuple[int, ...]]:
    """All that one GPU can be cut into: how many slices of each profile, by every choice of places."""
    profiles, starts = model.profiles, STARTS[model.compute]
    found: set[tuple[int, ...]] = set()

    def place(taken: int, counts: tuple[int, ...], first: int) -> None:
        found.add(counts)
        for at in range(first, len(profiles)):
            units = profiles[at].memory // model.unit
            for start in starts[profiles[at].compute, units]:
                mask = ((1 << units) - 1) << start
                if not taken & mask:
                    place(taken | mask, (*counts[:at], counts[at] + 1, *counts[at + 1 :]), at)

    place(0, (0,) * len(profiles), 0)
    return frozenset(found)


def sums(model: Model, gpus: int) -> set[tuple[int, ...]]:
    """All that so many GPUs can be cut into."""
    found = {(0,) * len(model.profiles)}
    for _ in range(gpus):
        found = {tuple(map(sum, zip(a, b, strict=True))) for a in found for b in layouts(model)}
    return found


@pytest.mark.parametrize("model", [MODELS[0], MODELS[-1]], ids=str)
def test_gpus_hold_what_some_choice_of_places_gives(model: Model) -> None:
    """One GPU and two GPUs, against a search over all places; and one slice more of any profile."""
    for gpus in (1, 2):
        possible = sums(model, gpus)
        tried = possible | {
            tuple(each + (at == other) for other, each in enumerate(counts))
            for counts in possible
            for at in range(len(counts))
        }
        for counts in tried:
            slices = dict(zip(model.profiles, counts, strict=True))
            assert model.holds(slices, gpus) == (counts in possible), (model.name, gpus, slices)


def test_nvidias_guide_lists_these_combinations_of_an_a100() -> None:
    """The largest combinations of compute slices on one GPU, as sets."""
    model = MODELS[0]
    largest = {
        tuple(
            sorted(
                Counter({each.compute: n for each, n in zip(model.profiles, c, strict=True) if n}).elements()
            )
        )
        for c in layouts(model)
        if not c[1]
    }
    guide = [(7,), (3, 4), (1, 2, 4), (1, 1, 1, 4), (3, 3), (1, 2, 3), (1, 1, 1, 3), (2, 2, 3), (1, 1, 2, 3)]
    guide += [(1, 1, 1, 1, 3), (1, 2, 2, 2), (1, 1, 1, 2, 2), (1, 1, 1, 1, 1, 2), (1,) * 7]
    assert set(guide) <= largest


COUNTS = st.dictionaries(st.integers(0, 5), st.integers(0, 10**15), max_size=6)


@examples(60)
@given(counts=COUNTS, which=st.sampled_from(MODELS))
def test_the_fewest_gpus_hold_slices_and_one_less_does_not(counts: dict[int, int], which: Model) -> None:
    """Also for amounts that no machine has."""
    slices = {which.profiles[at % len(which.profiles)]: number for at, number in counts.items()}
    fewest = which.fewest(slices)
    assert which.holds(slices, fewest)
    assert not fewest or not which.holds(slices, fewest - 1)


def test_one_slice_of_a_gpu_has_the_media_extensions() -> None:
    """It takes the place of a slice without them, and needs a GPU that is not full."""
    model, me = MODELS[0], Profile(1, 5, media=True)
    assert model.holds({me: 1, Profile(1, 5): 6}, 1)
    assert not model.holds({me: 1, Profile(1, 5): 7}, 1)
    assert not model.holds({me: 2}, 1)
    assert not model.holds({me: 2, Profile(3, 20): 3}, 2)
    assert model.has(me)
    assert not model.has(Profile(3, 20, media=True))
    a30 = MODELS[-1]
    assert a30.has(Profile(2, 12, media=True))
    assert not a30.has(Profile(4, 24, media=True))


@pytest.mark.parametrize(
    ("product", "model"),
    [
        (A100, "A100-40GB"),
        ("A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A100-80GB-PCIe", "A100-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB"),
        ("NVIDIA-H100-PCIe", "H100-80GB"),
        ("NVIDIA-A30", "A30"),
        ("NVIDIA-H100-NVL", None),
        ("Tesla-T4", None),
        ("", None),
    ],
)
def test_the_label_of_the_product_says_the_model(product: str, model: str | None) -> None:
    """As NVIDIA's feature discovery writes it."""
    sizes = {"A30": "g1_6", "A100-40GB": "g1_5"}
    found = partition_of(node(product, "1", **{sizes.get(model or "", "g1_10"): 1}))
    assert found is not None
    assert (found.model and found.model.name) == model
    assert bool(found.unknown) == (model is None)


def test_gpus_that_pods_have_as_a_whole_hold_no_slices() -> None:
    """Of four GPUs one is whole; slices of three can be there, and not of four."""
    assert partition_of(node(A100, "4", gpu=1, g3_20=6)).fault == ""  # type: ignore[union-attr]
    found = partition_of(node(A100, "4", gpu=1, g3_20=7))
    assert found is not None
    assert (found.gpus, found.needs) == (3, 4)
    assert "need 4 A100-40GB GPUs, but the node has 3 for slices" in found.fault
    assert partition_of(node(A100, "4", gpu=4)) is None


def test_manifests_whose_gpus_cannot_hold_their_slices_are_refused() -> None:
    """The sentence names the node, the resources with their amounts, the GPUs, and what to do."""
    error = refused(manifest(**{SMALL: 9, HALF: 3}))
    for part in (
        "Node a",
        f"9 of {SMALL}",
        f"3 of {HALF}",
        "need 3 A100-40GB GPUs",
        "the node has 2 for slices",
        "correct the",
    ):
        assert part in error
    assert check(manifest(**{SMALL: 4, HALF: 3})).exit_code == 0
    pool: dict[str, Any] = {
        "apiVersion": "harness/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {
            "count": 50,
            "template": {
                "metadata": {"labels": {PRODUCT: A100, "nvidia.com/gpu.count": "1"}},
                "allocatable": {"cpu": 9, SMALL: 8},
            },
        },
    }
    assert refused(pool).count("need 2 A100-40GB GPUs") == 1
    pool["spec"]["template"]["devices"] = {"nvidia.com/gpu": 1}
    pool["spec"]["template"]["allocatable"][SMALL] = 7
    assert "need 1 A100-40GB GPUs, but the node has 0 for slices" in refused(pool)


def test_a_node_that_comes_later_is_refused_as_well() -> None:
    """By a replay, also if nothing but nodes changes; the sentence says when."""
    late = manifest("late", **{SMALL: 15})
    late["metadata"]["annotations"] = {"harness/from": "10s"}
    with pytest.raises(ClusterError, match="10s after the origin: Node late: 15 of"):
        unrolled(cluster_from([manifest(), late], "test"), None)


def test_the_check_shows_slices_as_parts_of_their_gpus() -> None:
    """A row for each profile, and the compute slices of all GPUs of a model that are cut into slices."""
    result = check(manifest(**{SMALL: 4, HALF: 2}), manifest("b", **{SMALL: 7, "nvidia.com/gpu": 1}))
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [SMALL, "A100-40GB", "11", "1/7", "5", "GB"] in rows
    assert [HALF, "A100-40GB", "2", "3/7", "20", "GB"] in rows
    assert "3 GPUs of model A100-40GB: slices use 17 of 21 compute slices" in result.stdout
    found = json.loads(check(manifest(**{SMALL: 4}), as_json=True).stdout)["mig"]
    assert found["models"] == [{"model": "A100-40GB", "gpus": 2, "compute": 14, "cut": 4}]
    (row,) = found["profiles"]
    assert (row["slices"], row["compute"], row["of_compute"], row["memory_gb"]) == (4, 1, 7, 5)


@pytest.mark.parametrize(
    ("labels", "resource", "why"),
    [
        ({}, SMALL, "the label nvidia.com/gpu.product is missing"),
        ({PRODUCT: A100}, SMALL, "the label nvidia.com/gpu.count is missing or not a number"),
        (
            {PRODUCT: A100, "nvidia.com/gpu.count": "9" * 60},
            SMALL,
            "nvidia.com/gpu.count is missing or not a number",
        ),
        (
            {PRODUCT: A100, "nvidia.com/gpu.count": "-1"},
            SMALL,
            "nvidia.com/gpu.count is missing or not a number",
        ),
        (
            {PRODUCT: "T4", "nvidia.com/gpu.count": "1"},
            SMALL,
            "harness knows the profiles of A100-40GB, A100-80GB,",
        ),
        (
            {PRODUCT: A100, "nvidia.com/gpu.count": "1"},
            "nvidia.com/mig-1g.6gb",
            "is not a known profile of A100-40GB",
        ),
        (
            {PRODUCT: A100, "nvidia.com/gpu.count": "1"},
            "nvidia.com/mig-0g.0gb",
            "is not a known profile of A100-40GB",
        ),
        (
            {PRODUCT: A100, "nvidia.com/gpu.count": "1", f"{SMALL}.replicas": "4"},
            SMALL,
            "a label says that pods share slices or GPUs by time-slicing",
        ),
        (
            {PRODUCT: f"{A100}-MIG-1g.5gb", "nvidia.com/gpu.count": "7"},
            SMALL,
            f"nvidia.com/gpu.count counts slices of {A100}-MIG-1g.5gb, not GPUs",
        ),
    ],
)
def test_slices_of_gpus_that_are_not_known_are_only_counted(
    labels: dict[str, str], resource: str, why: str
) -> None:
    """Nothing is refused, however many there are, and the check says why."""
    result = check(manifest(labels=labels, **{resource: 10**12}))
    assert result.exit_code == 0
    assert "slices of a are only counted: " in result.stdout
    assert why in result.stdout
    assert "1,000,000,000,000" in result.stdout


def test_labels_of_a_real_node_do_not_keep_its_gpus_unknown() -> None:
    """NVIDIA's feature discovery writes a label for each profile; no sharing in time has 0 or 1 replicas."""
    labels = {PRODUCT: A100, "nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"}
    labels |= {"nvidia.com/gpu.replicas": "0", f"{SMALL}.replicas": "1", f"{SMALL}.count": "7"}
    result = check(manifest(labels=labels, **{"nvidia.com/gpu": "0", SMALL: "7", HALF: "2"}))
    assert "2 GPUs of model A100-40GB: slices use 13 of 14 compute slices" in result.stdout


def test_gpus_of_the_strategy_single_are_slices() -> None:
    """The product's label names the profile; the resource and the label of the count count slices."""
    labels = {
        PRODUCT: f"{A100}-MIG-3g.20gb",
        "nvidia.com/gpu.count": "16",
        "nvidia.com/mig.strategy": "single",
    }
    result = check(*(manifest(f"n{at}", labels, **{"nvidia.com/gpu": 16}) for at in range(2)))
    assert result.exit_code == 0
    assert (
        "nvidia.com/gpu of n0 and 1 more node counts slices of profile 3g.20gb, not GPUs (strategy 'single')"
        in result.stdout
    )


def test_the_page_shows_what_the_check_says() -> None:
    """The table of docs/shared-gpus.md, and the partition that the page says would be refused."""
    root = Path(__file__).parents[2]
    example = root / "docs" / "examples" / "mig.yaml"
    page = (root / "docs" / "shared-gpus.md").read_text(encoding="utf-8")
    table = page.split("```text\n")[1].split("```")[0]
    assert table in CliRunner().invoke(cluster, ["check", str(example)]).stdout
    text = example.read_text(encoding="utf-8")
    more = yaml.safe_load(text.replace("mig-3g.20gb: 3", "mig-3g.20gb: 4"))
    assert "need 4 A100-40GB GPUs, but the node has 3 for slices" in refused(more)
    shown = yaml.safe_load(page.split("## MIG")[1].split("of its own:\n\n")[1].split("\n\nA pod requests")[0])
    same = yaml.safe_load(text)
    for key in ("nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "nvidia.com/gpu"):
        assert shown["spec"]["template"]["allocatable"][key] == same["spec"]["template"]["allocatable"][key]


def _names() -> Iterator[str]:
    yield from ("nvidia.com/mig-", "nvidia.com/mig-x", SMALL, PAIR, HALF, "nvidia.com/mig-9g.999gb")


@examples(60)
@given(
    has=st.dictionaries(st.sampled_from([*_names(), "nvidia.com/gpu"]), st.integers(0, 2**63 - 1)),
    labels=st.dictionaries(st.sampled_from([PRODUCT, "nvidia.com/gpu.count"]), st.text(max_size=20)),
)
def test_any_node_is_answered(has: dict[str, int], labels: dict[str, str]) -> None:
    """With amounts and labels of any kind, a node has a partition if and only if it offers slices."""
    found = partition_of(Node("a", frozen(has), frozen(labels)))
    slices = {name for name, number in has.items() if number and name.startswith("nvidia.com/mig-")}
    assert (found is not None) == bool(slices)
    if found is not None:
        assert set(found.slices) == slices
        assert isinstance(found.fault, str)
