"""Kinds of manifests that plugins bring: read, checked and told as ours are."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from harness import Register, hookimpl
from harness.base.errors import ClusterError, InputError, OptionError, PluginError
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.content import content
from harness.cluster.convert import convert
from harness.cluster.coverage.common import metadata
from harness.cluster.coverage.verdicts import Coverage, assumed, modelled
from harness.cluster.draft import Draft, read_metadata
from harness.cluster.kinds import table
from harness.cluster.kinds.kind import Kind, Knob
from harness.cluster.kinds.quotas import Quota
from harness.cluster.kinds.table import KINDS, Kinds
from harness.cluster.load import cluster_from
from harness.cluster.manifests import cluster_queue_manifest, flavor_manifest
from harness.cluster.model import Cluster
from harness.cluster.yaml.fields import Fields
from harness.plugins import load
from harness.plugins.kind import KindSpec

TEAM = "Team.example.org"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4"}},
}


QUEUE = cluster_queue_manifest("q", "f", {"cpu": 2000}, preemption={})


@dataclass(frozen=True, slots=True)
class Team:
    """Something that a scheduler of our own looks at."""

    name: str
    seats: int = 0
    above: str = ""
    most: Mapping[str, int] = field(default_factory=dict)

    def scaled(self, scale: Fraction) -> Team:
        """So many times the seats."""
        return replace(self, seats=int(self.seats * scale))

    def quota(self, cluster: Cluster) -> Quota:
        """A core for each seat."""
        return Quota({"cpu": 1000 * self.seats}, 2, self.above or None, self.most or None)


def write_teams(quotas: Mapping[str, Quota]) -> list[Mapping[str, Any]]:
    """A Team for each quota, with a seat for each guaranteed core."""
    return [
        team(name, seats=quota.nominal["cpu"] // 1000, above=quota.parent or "")
        for name, quota in quotas.items()
    ]


def read_team(fields: Fields, draft: Draft) -> None:
    """A Team."""
    name, spec = read_metadata(fields).name, fields.child("spec")
    most = spec.amounts("most") if "most" in spec else {}
    team = Team(name, spec.integer("seats", least=0), spec.string("above"), most)
    draft.custom_resources(TEAM).add(name, team, fields)


def check_teams(draft: Draft) -> None:
    """A team is below one that there is."""
    teams = draft.custom_resources(TEAM)
    for name, team in teams.items():
        if team.above and team.above not in teams:
            teams.fields(name).fault("spec.above", f"there is no Team {team.above!r}")


KNOBS = (Knob("seats", "spec.seats", whole=True), Knob("most", "spec.most", "resource"))
COVERAGE = Coverage(
    metadata(),
    modelled("spec.seats", "spec.above", "spec.most{}"),
    assumed("nobody asks for one", "spec.colour"),
)


def brings(name: str) -> Any:
    """A plugin that brings a kind."""

    def hook(register: Register[KindSpec]) -> None:
        register(KindSpec(name, Kind(("v1",), read_team, COVERAGE, check_teams, KNOBS, write_teams)))

    return types.SimpleNamespace(harness_register_kinds=hookimpl(hook))


def team(name: str, **spec: Any) -> Mapping[str, Any]:
    """A manifest."""
    return {"apiVersion": "example.org/v1", "kind": "Team", "metadata": {"name": name}, "spec": spec}


def read(*teams: Mapping[str, Any]) -> Cluster:
    """A cluster of a node and teams."""
    return cluster_from([NODE, *teams], "test", kinds=Kinds(brought()))


def brought() -> Mapping[tuple[str, str], Kind]:
    """The kind of the plugin."""
    plugins = load(only=["teams"], extra={"teams": brings(TEAM)})
    return {spec.key: spec.how for spec in plugins.kinds}


def test_objects_of_a_plugins_kind_are_part_of_the_cluster() -> None:
    """By kind and name, in what a run keeps of it and in what tells clusters apart."""
    cluster = read(team("a", seats=4), team("b", seats=2, above="a"))
    assert cluster.custom_resources == {TEAM: {"a": Team("a", 4), "b": Team("b", 2, "a")}}
    assert content(cluster)["objects"][TEAM] == {"a": {"seats": "4"}, "b": {"seats": "2", "above": "a"}}
    assert cluster.digest != read(team("a", seats=5), team("b", seats=2, above="a")).digest
    assert not cluster.warnings


def test_a_row_of_several_fields_stands_for_a_row_of_each() -> None:
    """In the middle of a path and at its end, with the marks of lists and mappings."""
    paths = [row.path for row in modelled("spec.(a|b[]).(c|d{})")]
    assert paths == ["spec.a.c", "spec.a.d{}", "spec.b[].c", "spec.b[].d{}"]


def test_faults_are_those_of_its_fields_and_of_the_rules_between_objects() -> None:
    """All of them at once, each with object and field."""
    with pytest.raises(ClusterError) as raised:
        read(team("a", seats=-1), team("b", above="c"), team("b"))
    assert [str(fault) for fault in raised.value.faults] == [
        "document 2, Team a: spec.seats: -1 is out of range (0 to 2147483647)",
        "document 4, Team b: is given twice; the first is in document 3, Team b",
        "document 3, Team b: spec.above: there is no Team 'c'",
    ]


def test_another_version_is_a_fault() -> None:
    """As of our own kinds."""
    with pytest.raises(ClusterError, match=r"example\.org/v2 is not supported; use example\.org/v1"):
        read({**team("a"), "apiVersion": "example.org/v2"})


def test_what_is_not_modelled_of_it_is_warned_of() -> None:
    """With what is assumed instead, or which field was probably meant."""
    assert read(team("a", colour="red", seat=1)).warnings == (
        "Team a: spec.colour is not modelled: nobody asks for one",
        "Team a: spec.seat is not modelled: no such field is known; did you mean 'seats'?",
    )


def test_without_the_plugin_its_kind_is_not_read() -> None:
    """Which is said."""
    cluster = cluster_from([NODE, team("a")], "test")
    assert not cluster.custom_resources
    assert cluster.warnings == ("Team (example.org/v1): 1 object is not read",)


def test_objects_say_what_becomes_of_them_in_a_cluster_of_another_size() -> None:
    """Those that do not stay as they are, with a warning."""
    cluster = read(team("a", seats=4))
    assert scaled_cluster(cluster, Fraction(2)).custom_resources[TEAM]["a"].seats == 8
    fixed = replace(cluster, custom_resources={TEAM: {"a": Fraction(1)}})
    scaled = scaled_cluster(fixed, Fraction(2))
    assert scaled.warnings == (f"{TEAM}: --scale-cluster does not change objects of this kind",)


def test_knobs_of_a_plugins_kind_are_listed_and_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Like those of our own kinds, with a key for each resource that any of its objects names."""
    monkeypatch.setattr(table, "installed_kinds", brought)
    cluster = cluster_from([NODE, team("a", seats=4, most={"cpu": "3"}), team("b")], "test")
    assert cluster.knobs() == {
        "Team/a.seats": 4,
        "Team/a.most[cpu]": 3,
        "Team/b.seats": None,
        "Team/b.most[cpu]": None,
    }
    changed = cluster.with_values({"Team/*.seats": 7, "Team/b.most[cpu]": "500m"})
    assert changed.custom_resources == {
        TEAM: {"a": Team("a", 7, "", {"cpu": 3000}), "b": Team("b", 7, "", {"cpu": 500})}
    }
    with pytest.raises(InputError, match="is not a whole number"):
        cluster.with_values({"Team/a.seats": 0.5})


def test_quotas_of_a_plugins_kind_are_converted() -> None:
    """From it and to it, with a note on what the other kind cannot say; a failure names the function."""
    kinds = Kinds({**brought(), **{key: KINDS[key] for key in KINDS if key[1].startswith("Elastic")}})
    teams = read(team("top", seats=6), team("a", seats=4, above="top", most={"cpu": "5"}))
    made = convert(teams, "elasticquota", kinds=kinds)
    assert made.notes == ("Team top, a: weight: elastic quotas do not share capacity by weight",)
    tree = cluster_from(made.manifests, "test", kinds=kinds)
    assert not tree.custom_resources
    assert (tree.elastic_quotas["a"].min_of("cpu"), tree.elastic_quotas["a"].max_of("cpu")) == (4000, 5000)
    back = cluster_from(convert(tree, TEAM, kinds=kinds).manifests, "test", kinds=kinds)
    assert back.custom_resources[TEAM] == {"top": Team("top", 6), "a": Team("a", 4, "top")}
    with pytest.raises(InputError, match=rf"already has {TEAM} objects"):
        convert(teams, TEAM, kinds=kinds)
    both = cluster_from(convert(teams, "elasticquota", keep=True, kinds=kinds).manifests, "test", kinds=kinds)
    with pytest.raises(InputError, match=f"test has elastic quotas and {TEAM} objects"):
        convert(both, "kueue", kinds=kinds)
    with pytest.raises(OptionError, match="there are no quotas of kind 'teams'"):
        convert(teams, "teams", kinds=kinds)
    for write in (len, lambda quotas: 1 / 0):
        odd: Any = {("example.org", "Team"): replace(brought()["example.org", "Team"], write=write)}
        queues = cluster_from([NODE, flavor_manifest("f"), QUEUE], "test")
        with pytest.raises(PluginError, match=f"function 'write' of {TEAM} failed"):
            convert(queues, TEAM, kinds=Kinds(odd))


def test_weights_that_a_plugins_kind_does_not_keep_are_noted() -> None:
    """All Teams weigh the same, so a queue with three times the weight of another loses it."""
    kinds = Kinds({**brought(), **{key: KINDS[key] for key in KINDS if key[1] in ("ClusterQueue", "Node")}})
    other = cluster_queue_manifest("other", "f", {"cpu": 2000}, preemption={})
    heavy = {**other, "spec": {**other["spec"], "fairSharing": {"weight": "3"}}}
    note = f"quota other: weight: {TEAM} objects cannot have weights in the same proportion"
    for given, noted in ((heavy, True), (other, False)):
        queues = cluster_from([NODE, flavor_manifest("f"), QUEUE, given], "test")
        assert (note in convert(queues, TEAM, kinds=kinds).notes) == noted


@pytest.mark.parametrize(("group", "kind"), [("", "Node"), ("scheduling.x-k8s.io", "ElasticQuota")])
def test_a_kind_is_brought_once(group: str, kind: str) -> None:
    """Not a second time over ours, nor over another plugin's."""
    with pytest.raises(PluginError, match=f"kind '?{kind}.{group}'?"):
        load(extra={"again": brings(f"{kind}.{group}")})


def test_elastic_quotas_are_brought_by_their_plugin() -> None:
    """The same way as anybody's."""
    brought = {spec.name: spec.owner for spec in load().kinds}
    assert brought == {
        f"{kind}.{group}": "elasticquota" for group, kind in KINDS if kind.startswith("ElasticQuota")
    }
