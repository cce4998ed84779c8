"""One scheduling session: allocate in the order of shares, then reclaim; gangs whole, on kube's nodes."""

from collections import Counter
from collections.abc import Generator, Iterator

from harness import Bind, Cluster, Decision, Job, Nominate, Preempt
from harness.models.kube.cache import Cache
from harness.models.kube.node import NodeInfo
from harness.models.kube.placement.scheduling import Scheduling
from harness.models.kube.placement.trial import NOTHING, Trial
from harness.models.kube.pod import PodInfo, Templates
from volcano_proportion.queue import KIND
from volcano_proportion.shares import deserved_shares, exceeds, share

Placed = tuple[PodInfo, NodeInfo]


class ProportionScheduler:
    """Schedules the pods that a `PodPolicy` makes of jobs."""

    def __init__(self, cluster: Cluster) -> None:
        self.cache = Cache(cluster)
        self.templates = Templates(self.cache.resources, lambda namespace, labels: ())
        self.scheduling = Scheduling(self.cache)
        self.attempts = 0
        self._queues = cluster.custom_resources.get(KIND, {})
        self._total = {name: amount for name, amount in cluster.capacity.items() if name != "pods"}
        self._held = {name: Counter[str]() for name in self._queues}
        self._asked = {name: Counter[str]() for name in self._queues}
        self._waiting: dict[int, dict[int, PodInfo]] = {}  # by job and number
        self._bound: dict[int, dict[int, PodInfo]] = {}
        self._deserved: dict[str, dict[str, int]] = {}

    def advance(self, now: int) -> None:
        """A session follows every instant at which something happened."""

    def add(self, pod: PodInfo) -> None:
        """A pod waits."""
        pod.keeps = 1 << 62  # room that is made for it is kept from all others
        self._waiting.setdefault(_job(pod).index, {})[pod.pod] = pod
        self._asked[_job(pod).queue].update(pod.template.spec.requests)

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """A pod that runs already is to stay where it is."""
        self.cache.nominate(pod, node)
        self.add(pod)

    def delete(self, pod: PodInfo) -> None:
        """A pod is gone."""
        self._asked[_job(pod).queue].subtract(pod.template.spec.requests)
        del self._bound[_job(pod).index][pod.pod]  # only bound pods leave
        self._take(pod)

    def run(self) -> Iterator[Decision]:
        """A session; victims without a grace period are gone at once, so that it goes on."""
        yield from self._allocate()
        while (yield from self._reclaim()):
            yield from self._allocate()

    def _in_turn(self) -> Iterator[tuple[Job, list[PodInfo], int]]:
        """Jobs with the pods that wait and how many are needed, of the queue with the least share next."""
        self._deserved = deserved_shares(self._queues, self._total, self._asked)
        jobs: dict[str, list[Job]] = {}
        for pods in filter(None, self._waiting.values()):
            jobs.setdefault((job := _job(next(iter(pods.values())))).queue, []).append(job)
        for waiting in jobs.values():
            waiting.sort(key=lambda job: (job.priority, -job.index))
        shares = {name: share(self._held[name], self._deserved[name]) for name in sorted(jobs)}
        while shares:
            job = jobs[min(shares, key=shares.__getitem__)].pop()
            available = sum(each.min_count for each in job.pod_sets) if job.gang else 1
            needed = max(1, available - len(self._bound.get(job.index, ())))
            yield job, [pod for _, pod in sorted(self._waiting[job.index].items())], needed
            if jobs[job.queue]:
                shares[job.queue] = share(self._held[job.queue], self._deserved[job.queue])
            else:
                del shares[job.queue]

    def _allocate(self) -> Iterator[Decision]:
        failed = set()  # what found no room finds none while pods are only added
        for job, pods, needed in self._in_turn():
            shape = job.queue, pods[0].template, needed
            placed = self._nodes_for(pods, needed) if shape not in failed else []
            if not placed:
                failed.add(shape)
            for pod, node in placed:
                self._put(pod, node)
                self.cache.nominate(pod, "")
                self._bound.setdefault(job.index, {})[pod.pod] = self._waiting[job.index].pop(pod.pod)
            for pod, node in placed:
                yield Bind(job, range(pod.pod, pod.pod + 1), node.name)

    def _reclaim(self) -> Generator[Decision, None, bool]:
        """Make room for one job within what its queue deserves; answers whether anybody had to go."""
        failed = set()  # a job that makes no room changes nothing
        for job, pods, needed in self._in_turn():
            gone: list[Placed] = []
            shape = job.queue, pods[0].template, needed
            waits = any(pod.nominated for pod in pods)  # for victims that are leaving
            placed = [] if waits or shape in failed else self._nodes_for(pods[:needed], needed, gone)
            for victim, node in gone:
                self._put(victim, node)
            if not gone or not placed:
                if not waits:
                    failed.add(shape)
                continue
            for victim, _ in gone:
                self._held[_job(victim).queue].subtract(victim.template.spec.requests)
                self.cache.terminate(victim)
            for pod, node in placed:
                self.cache.nominate(pod, node.name)
            for victim, _ in gone:
                yield Preempt(_job(victim), job, "Reclaimed", range(victim.pod, victim.pod + 1))
            for pod, node in placed:
                yield Nominate(job, pod.pod, node.name)
            return True
        return False

    def _nodes_for(self, pods: list[PodInfo], needed: int, gone: list[Placed] | None = None) -> list[Placed]:
        """Nodes for pods; none if fewer than needed fit. Who has to go for it is taken away, into `gone`."""
        placed: list[Placed] = []
        for pod in pods:
            held, deserved = self._held[_job(pod).queue], self._deserved[_job(pod).queue]
            asked = pod.template.spec.requests
            if exceeds({each: held[each] + asked[each] for each in asked}, deserved):
                break
            found = self.scheduling.schedule(pod)
            node = found if isinstance(found, NodeInfo) else None if gone is None else self._freed(pod, gone)
            if node is None:
                break
            self._put(pod, node)
            placed.append((pod, node))
        for pod, _ in placed:
            self._take(pod)
        return placed if len(placed) >= needed else []

    def _freed(self, pod: PodInfo, gone: list[Placed]) -> NodeInfo | None:
        """The first node with room without pods of queues that hold more than they deserve."""
        for position in self.scheduling.shape_nodes(pod.template.shape).unschedulable():
            node, before = self.cache.nodes[position], len(gone)
            for victim in reversed(node.by_importance()):
                job, fits = _job(victim), Trial(pod, node, NOTHING, self.cache.names).fits()
                if fits or job.queue == _job(pod).queue or victim.terminating or victim.node < 0:
                    continue
                over = exceeds(self._held[job.queue], self._deserved[job.queue])
                if over and self._queues[job.queue].reclaimable:
                    for mate in list(self._bound[job.index].values()) if job.gang else [victim]:
                        gone.append((mate, self.cache.nodes[mate.node]))
                        self._take(mate)
            if Trial(pod, node, NOTHING, self.cache.names).fits():
                return node
            while len(gone) > before:
                self._put(*gone.pop())
        return None

    def _put(self, pod: PodInfo, node: NodeInfo) -> None:
        self.cache.add_pod(pod, node)
        self._held[_job(pod).queue].update(pod.template.spec.requests)

    def _take(self, pod: PodInfo) -> None:
        self.cache.remove_pod(pod)
        if not pod.terminating:
            self._held[_job(pod).queue].subtract(pod.template.spec.requests)


def _job(pod: PodInfo) -> Job:
    assert pod.job is not None, "a pod of a replay belongs to a job"
    return pod.job
