"""PodDisruptionBudgets and the scheduler's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.base.errors import ClusterError
from harness.cluster.coverage.scheduling import MODELLED_PLUGINS
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration, ScoringStrategy
from harness.cluster.load import cluster_from

SELECTOR = {"selector": {"matchLabels": {"app": "web"}}}


def budget(**spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget."""
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}


def allowed(expected: int, healthy: int, **spec: Any) -> int:
    """How many disruptions a budget allows."""
    found = cluster_from([budget(**SELECTOR, **spec)], "test").disruption_budgets[0]
    return found.allowed(expected, healthy)


@pytest.mark.parametrize(
    ("spec", "expected", "healthy", "disruptions"),
    [
        ({"minAvailable": 2}, 5, 4, 2),
        ({"minAvailable": 5}, 5, 4, 0),
        ({"minAvailable": "50%"}, 5, 4, 1),
        ({"minAvailable": "0%"}, 5, 4, 4),
        ({"maxUnavailable": 1}, 5, 5, 1),
        ({"maxUnavailable": 1}, 5, 4, 0),
        ({"maxUnavailable": "30%"}, 5, 5, 2),
        ({"maxUnavailable": 9}, 5, 4, 4),
        ({}, 5, 5, 0),
    ],
)
def test_allowed_disruptions_follow_from_the_pods_that_exist(
    spec: dict[str, Any], expected: int, healthy: int, disruptions: int
) -> None:
    """Percentages are of the expected pods and round up; what is missing already counts."""
    assert allowed(expected, healthy, **spec) == disruptions


def test_a_budget_counts_labelled_pods_of_its_namespace() -> None:
    """Pods without labels never match, and an empty selector matches none in a preemption."""
    found = cluster_from([budget(**SELECTOR)], "test").disruption_budgets[0]
    assert found.matches("default", {"app": "web"})
    assert not found.matches("other", {"app": "web"})
    assert not found.matches("default", {})
    everything = cluster_from([budget(selector={})], "test")
    assert not everything.disruption_budgets[0].matches("default", {"app": "web"})
    assert everything.warnings == (
        (
            "PodDisruptionBudget default/b: has no selector or an empty one, so no preemption takes it into "
            "account"
        ),
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            "maxUnavailable: cannot be given together with minAvailable",
        ),
        ({"minAvailable": "half"}, "minAvailable: 'half' must be a whole number of pods, or 0% to 100%"),
        ({"maxUnavailable": -1}, "maxUnavailable: -1 is out of range"),
        ({"maxUnavailable": "101%"}, "maxUnavailable: '101%' must be"),
    ],
)
def test_a_faulty_budget_is_named(spec: dict[str, Any], message: str) -> None:
    """The message has the object and the field."""
    with pytest.raises(ClusterError) as error:
        cluster_from([budget(**SELECTOR, **spec)], "test")
    assert len(error.value.faults) == 1
    assert message in str(error.value)
    assert "PodDisruptionBudget b: spec." in str(error.value)


# --- the scheduler's configuration ------------------------------------------------------------------------


def configuration(**fields: Any) -> Any:
    """The cluster of a KubeSchedulerConfiguration."""
    manifest = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **fields,
    }
    return cluster_from([manifest], "test")


def test_the_defaults_are_those_of_kube_scheduler() -> None:
    """An empty configuration changes nothing."""
    assert configuration().scheduler == SchedulerConfiguration()
    assert configuration().warnings == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"disablePreemption": True},
        {"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}]},
        {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}]},
        {"profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}]},
    ],
)
def test_preemption_is_disabled_in_the_old_way_or_in_the_profile(fields: dict[str, Any]) -> None:
    """All of them mean the same, and no warning says that they are not heeded."""
    found = configuration(**fields)
    assert found.scheduler.disable_preemption
    assert found.warnings == ()


def test_the_configuration_of_the_oldest_group_is_read(tmp_path: Path) -> None:
    """`disablePreemption` counts there as well: the pod of higher priority waits for the end of the other."""
    manifest = {
        "apiVersion": "componentconfig/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
        "algorithmSource": {"provider": "DefaultProvider"},
        "disablePreemption": True,
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    cluster = cluster_from([manifest, node], "test")
    assert cluster.warnings == ()
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "job_id,submit_time,duration,queue,priority,request.cpu\nlow,0,3600,q,0,4\nhigh,10,3600,q,10,4\n"
    )
    run = harness.replay(trace, plugin="default-preemption", cluster=cluster, output=tmp_path)
    assert run.metrics.filter(metric="disruption.preemptions", scope="all")["value"].to_list() == [0]


@pytest.mark.parametrize(
    ("point", "name"), [("postFilter", "Other"), ("multiPoint", "NodeAffinity"), ("multiPoint", "*")]
)
def test_other_plugins_that_are_disabled_are_warned_of(point: str, name: str) -> None:
    """The model has them on; all of them where all are disabled."""
    plugins = {point: {"disabled": [{"name": name}]}}
    warnings = configuration(profiles=[{"plugins": plugins}]).warnings
    assert warnings[0].startswith(
        f"KubeSchedulerConfiguration: profiles[].plugins.{point}.disabled: "
        f"{'DefaultBinder' if name == '*' else name} is not"
    )
    assert len(warnings) == (len(MODELLED_PLUGINS) - 1 if name == "*" else 1)


@pytest.mark.parametrize(
    "plugins",
    [
        {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}},
        {"score": {"disabled": [{"name": "ImageLocality"}]}},
        {"postFilter": {"enabled": [{"name": "DefaultPreemption"}]}},
        {"postFilter": {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}},
        {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": n} for n in MODELLED_PLUGINS]}},
    ],
)
def test_what_says_no_more_than_the_default_profile_is_not_warned_of(plugins: dict[str, Any]) -> None:
    """Plugins that look at nothing that is modelled, and those that are on again by their names."""
    found = configuration(profiles=[{"plugins": plugins}])
    assert found.warnings == ()
    assert not found.scheduler.disable_preemption


def test_arguments_of_plugins_are_read() -> None:
    """A profile's own percentage stands before the common one."""
    args = {"minCandidateNodesPercentage": 20, "minCandidateNodesAbsolute": 5}
    found = configuration(
        percentageOfNodesToScore=30,
        profiles=[
            {
                "percentageOfNodesToScore": 70,
                "pluginConfig": [
                    {"name": "DefaultPreemption", "args": args},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
                ],
            }
        ],
    ).scheduler
    assert found == SchedulerConfiguration(70, False, 20, 5, 7)


def test_a_preemption_cannot_want_no_candidates_by_both_arguments() -> None:
    """As kube-scheduler does not start then; either of them may be 0."""
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    for name in args:
        configured = {"name": "DefaultPreemption", "args": {**args, name: 1}}
        assert configuration(profiles=[{"pluginConfig": [configured]}]).warnings == ()
    with pytest.raises(
        ClusterError, match="minCandidateNodesPercentage: is 0, and so is minCandidateNodesAbsolute"
    ):
        configuration(profiles=[{"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}])


def strategy(**fields: Any) -> Any:
    """The cluster of a configuration with a scoring strategy."""
    arguments = {"name": "NodeResourcesFit", "args": {"scoringStrategy": fields}}
    return configuration(profiles=[{"pluginConfig": [arguments]}])


def test_a_scoring_strategy_has_the_defaults_of_kube_scheduler() -> None:
    """Cpu and memory where it names no resources, weights of 1, and no warning that it does not count."""
    assert strategy().scheduler == SchedulerConfiguration()
    most = strategy(
        type="MostAllocated", resources=[{"name": "nvidia.com/gpu", "weight": 5}, {"name": "cpu"}]
    )
    assert most.scheduler.scoring == ScoringStrategy("MostAllocated", (("nvidia.com/gpu", 5), ("cpu", 1)))
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})
    assert ratio.scheduler.scoring == ScoringStrategy("RequestedToCapacityRatio", shape=((0, 0), (100, 10)))
    assert most.warnings == ratio.warnings == ()
    assert most.digest != ratio.digest != configuration().digest == strategy().digest


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"type": "Most"}, "scoringStrategy.type: "),
        ({"resources": [{"weight": 2}]}, r"resources\[0\].name: is missing"),
        ({"resources": [{"name": "cpu", "weight": 101}]}, r"resources\[0\].weight: 101 is out of range"),
        ({"type": "RequestedToCapacityRatio"}, "shape: must have points"),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 1}] * 2},
            },
            "shape: must have points with increasing utilization",
        ),
    ],
)
def test_a_scoring_strategy_that_kube_scheduler_refuses_is_refused(fields: dict[str, Any], says: str) -> None:
    """With its place."""
    with pytest.raises(ClusterError, match=says):
        strategy(**fields)


def test_what_is_beyond_the_model_is_warned_of() -> None:
    """Other weights, plugins and extenders would change decisions."""
    profile = {"plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}}}
    warnings = configuration(profiles=[profile], extenders=[{"urlPrefix": "x"}]).warnings
    assert any("profiles[].plugins.score.enabled[].weight is not modelled" in warning for warning in warnings)
    assert any("extenders is not modelled" in warning for warning in warnings)


BINPACK = {
    "schedulerName": "binpack",
    "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
}


@pytest.mark.parametrize(
    ("profiles", "names", "kind", "warned"),
    [
        ([BINPACK, {"schedulerName": "default-scheduler"}], ("", "binpack"), "LeastAllocated", "binpack"),
        ([BINPACK, {"schedulerName": "other"}], ("binpack", "other"), "MostAllocated", "other"),
        ([BINPACK, {**BINPACK, "schedulerName": "same"}], ("binpack", "same"), "MostAllocated", ""),
    ],
)
def test_pods_of_all_profiles_are_placed_by_the_settings_of_one(
    profiles: list[Any], names: tuple[str, ...], kind: str, warned: str
) -> None:
    """The default scheduler's, or the first; if the settings of another profile differ, a warning says so."""
    found = configuration(profiles=profiles)
    assert found.scheduler_names == names
    assert found.scheduler.scoring.kind == kind
    said = [each for each in found.warnings if "apply to the pods of" in each]
    assert [each.split(" of ")[-1].split(",")[0] for each in said] == ([warned] if warned else [])


def test_pods_of_another_profile_get_nodes() -> None:
    """They are not pods of another scheduler."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"schedulerName": "binpack", "containers": [{"name": "c"}]},
    }
    found = configuration(profiles=[{"schedulerName": "default-scheduler"}, BINPACK])
    (read,) = cluster_from([*found.manifests, pod], "test").pods
    assert found.schedules(read)


@pytest.mark.parametrize(
    ("profiles", "says"),
    [
        ([BINPACK, BINPACK], r"profiles\[1\].schedulerName: binpack is the name of another profile"),
        ([BINPACK, {}], r"profiles\[1\].schedulerName: is missing"),
    ],
)
def test_profiles_that_kube_scheduler_refuses_are_refused(profiles: list[Any], says: str) -> None:
    """Each of several profiles has a name of its own."""
    with pytest.raises(ClusterError, match=says):
        configuration(profiles=profiles)
