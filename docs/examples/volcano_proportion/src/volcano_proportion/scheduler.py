"""A scheduling session, which allocates in the order of shares and then reclaims; gangs are placed whole."""

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
    """A scheduler for the pods that a `PodPolicy` creates from jobs."""

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
        """Do nothing, because a session runs after every event."""

    def add(self, pod: PodInfo) -> None:
        """Add a waiting pod."""
        pod.keeps = 1 << 62  # no other pod may take the capacity that is freed for it
        self._waiting.setdefault(_job(pod).index, {})[pod.pod] = pod
        self._asked[_job(pod).queue].update(pod.template.spec.requests)

    def add_running(self, pod: PodInfo, node: str, start: int | None) -> None:
        """Add a pod that already runs and stays on its node."""
        self.cache.nominate(pod, node)
        self.add(pod)

    def delete(self, pod: PodInfo) -> None:
        """Remove a pod."""
        self._asked[_job(pod).queue].subtract(pod.template.spec.requests)
        del self._bound[_job(pod).index][pod.pod]  # only bound pods leave
        self._take(pod)

    def run(self) -> Iterator[Decision]:
        """Run a session, which allocates again after each reclaim because victims may be gone immediately."""
        yield from self._allocate()
        while (yield from self._reclaim()):
            yield from self._allocate()

    def _in_turn(self) -> Iterator[tuple[Job, list[PodInfo], int]]:
        """Yield jobs, their waiting pods and the needed number; the queue with the smallest share is next."""
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
        failed = set()  # pods only get added, so a shape that did not fit still does not fit
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
        """Reclaim pods for one job within its queue's deserved share; return whether any were preempted."""
        failed = set()  # a failed attempt changes nothing
        for job, pods, needed in self._in_turn():
            gone: list[Placed] = []
            shape = job.queue, pods[0].template, needed
            waits = any(pod.nominated for pod in pods)  # for victims that terminate
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
        """Return nodes for pods, or none if too few pods fit; move victims to `gone`."""
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
        """Return the first node that fits the pod once pods of queues beyond their share are removed."""
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
