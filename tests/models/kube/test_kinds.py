"""Which pods can never run: the answer is the same whatever was asked before, and nodes are asked seldom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from more_examples import examples

from harness import Job, PodSet
from harness.cluster.devices import GPU_COUNT, MILLI_GPU
from harness.cluster.kinds.scheduler_configuration import SchedulerConfiguration
from harness.cluster.kinds.selectors import Taint
from harness.cluster.model import Cluster, Node, frozen
from harness.models.kube.kinds import Kinds
from harness.models.kube.scheduler import Scheduler
from harness.policy import Never

AMOUNTS = st.fixed_dictionaries(
    {"cpu": st.integers(0, 9)},
    optional={"memory": st.integers(0, 9), MILLI_GPU: st.sampled_from((500, 1000, 1500)), "odd": st.just(1)},
)
NODES = st.lists(st.tuples(AMOUNTS, st.booleans(), st.sampled_from("ab"), st.booleans()), max_size=4)
PODS = st.lists(st.tuples(AMOUNTS, st.sampled_from(("", "a", "b"))), min_size=1, max_size=12)


def cluster_of(nodes: list[tuple[dict[str, int], bool, str, bool]]) -> Cluster:
    """Nodes with these amounts, with or without devices, of some pool, tainted or not."""
    taint = (Taint("spot", "1", "NoSchedule"),)
    made = {}
    for number, (amounts, devices, pool, tainted) in enumerate(nodes):
        labels = {"pool": pool, **({GPU_COUNT: "1"} if devices else {})}
        node = Node(f"n{number}", frozen(amounts), frozen(labels), taints=taint if tainted else ())
        made[node.name] = node
    return Cluster(nodes=frozen(made))


def kinds_of(cluster: Cluster) -> Kinds:
    return Kinds(Scheduler(cluster, SchedulerConfiguration()), cluster)


def asking(number: int, amounts: dict[str, int], pool: str) -> Job:
    """A job with one pod, which selects a pool."""
    selector = frozen({"pool": pool} if pool else {})
    pods = (PodSet("main", 1, 1, frozen(amounts), node_selector=selector),)
    return Job(number, f"j{number}", 0, "q", "default", "", 0, "", True, True, 0, f"u{number}", pods, 1)


def never_alone(cluster: Cluster, job: Job) -> Never | None:
    """The answer of an object that was asked nothing else."""
    return kinds_of(cluster).of_job(job).never


@given(NODES, PODS)
@examples(200)
def test_who_never_runs_does_not_depend_on_earlier_questions(
    nodes: list[tuple[dict[str, int], bool, str, bool]], pods: list[tuple[dict[str, int], str]]
) -> None:
    """Whether a node could run others says something only about pods with its rules that ask for less."""
    cluster = cluster_of(nodes)
    jobs = [asking(number, amounts, pool) for number, (amounts, pool) in enumerate(pods)]
    asked, read = kinds_of(cluster), kinds_of(cluster)
    for job in jobs:
        alone = never_alone(cluster, job)
        assert asked.never(job) == alone
        assert read.of_job(job).never == alone


def test_a_job_that_asks_for_less_than_another_is_judged_without_a_template() -> None:
    """So jobs with amounts of their own cost no template each before a replay."""
    cluster = cluster_of([({"cpu": 1}, False, "a", False), ({"cpu": 9}, False, "a", False)])
    scheduler = Scheduler(cluster, SchedulerConfiguration())
    kinds = Kinds(scheduler, cluster)
    for number, cpu in enumerate((9, *range(9))):
        assert kinds.never(asking(number, {"cpu": cpu}, "")) is None
    assert len(list(scheduler.templates.all)) == 1


def test_pods_that_differ_in_their_amounts_share_the_key_of_their_rules() -> None:
    """Their templates are those that would be found by their whole specs."""
    scheduler = Scheduler(cluster_of([({"cpu": 9}, False, "a", False)]), SchedulerConfiguration())
    kinds = Kinds(scheduler, Cluster())
    first, other = (kinds.of_job(asking(cpu, {"cpu": cpu}, "a")).only for cpu in (1, 2))
    assert first is not None
    assert other is not None
    found = other.template
    assert found.shape.rules == first.template.shape.rules
    assert scheduler.templates.like(first.template, found.spec) is found
    assert scheduler.templates.of("default", {}, found.spec) is found
    assert scheduler.templates.of("default", {"app": "a"}, found.spec) is not found
