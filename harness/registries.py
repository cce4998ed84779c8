"""What plugins register, kind by kind, each thing with the plugin that owns it.

A registrar's `__call__` is the one place that says what can be registered of its kind, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from harness.errors import PluginError
from harness.options import Option

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cluster.model import Cluster
    from harness.metrics.measurement import Compute
    from harness.policy import ByQueues, Foresight, IgnoredFields, PolicyFactory, RunningJobs
    from harness.trace.reader import Reading


class Owner(NamedTuple):
    """The plugin that registers something; `module` is "" for one that was given in Python."""

    name: str
    version: str
    module: str


class _Spec(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...


SpecT = TypeVar("SpecT", bound=_Spec)


class Registry(Generic[SpecT]):
    """Things of one kind by name, each with the plugin that owns it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._specs: dict[str, SpecT] = {}

    def __iter__(self) -> Iterator[SpecT]:
        return iter(sorted(self._specs.values(), key=lambda spec: spec.name))

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def add(self, spec: SpecT) -> None:
        """Add one.

        Raises:
            PluginError: the name is taken; both owners are named.
        """
        taken = self._specs.get(spec.name)
        if taken is not None:
            raise PluginError(
                f"{self.kind} {spec.name!r} is registered by both {taken.owner!r} and {spec.owner!r}",
                hint=f"leave one out: --no-plugin {spec.owner}",
            )
        self._specs[spec.name] = spec

    def get(self, name: str) -> SpecT | None:
        """The one of that name, or None."""
        return self._specs.get(name)

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._specs)

    def drop_owner(self, owner: str) -> None:
        """Forget all that one plugin registered."""
        self._specs = {name: spec for name, spec in self._specs.items() if spec.owner != owner}


class Registrar(Generic[SpecT]):
    """Adds things of one kind to their registry, in the name of the plugin whose hook it is passed to."""

    def __init__(self, owner: Owner, registry: Registry[SpecT]) -> None:
        self.owner = owner
        self.registry = registry


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A registered policy: what makes it, what it is, and which plugin brought it.

    `module` is what an installed plugin is loaded by; "" for one that was given in Python. `record` says
    that it decides nothing, but does what the trace says happened.
    """

    name: str
    factory: PolicyFactory
    help: str
    options: tuple[Option, ...]
    clairvoyant: bool
    owner: str
    version: str
    running: RunningJobs | None = None
    ignored_fields: IgnoredFields | None = None
    never: Foresight | None = None
    module: str = ""
    record: bool = False
    by_queues: ByQueues | None = None

    def admits_by_queues(self, cluster: Cluster) -> bool:
        """Whether the queue of every job must lead to a ClusterQueue of a cluster."""
        return self.by_queues is not None and self.by_queues(cluster)


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """A registered trace reader; `suffixes` and `sniff` say which files it is for.

    `sniff` gets the path and the first 4 KiB, decompressed, and is asked only when no suffix decides.
    `folder` says whether a folder is a trace that it reads; most read files only.
    """

    name: str
    read: Callable[[Path, Mapping[str, Any]], Reading]
    help: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Path, bytes], bool] | None
    options: tuple[Option, ...]
    owner: str
    version: str
    folder: Callable[[Path], bool] | None = None


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A registered metric or family of metrics over a finished run; `module` as of a policy."""

    name: str
    compute: Compute
    help: str
    owner: str
    version: str
    module: str = ""


class RegisterPolicy(Registrar[PolicySpec]):
    """What `harness_register_policies` gets."""

    def __call__(
        self,
        name: str,
        factory: PolicyFactory,
        *,
        help: str,
        options: Iterable[Option] = (),
        clairvoyant: bool = False,
        running: RunningJobs | None = None,
        ignored_fields: IgnoredFields | None = None,
        never: Foresight | None = None,
        record: bool = False,
        by_queues: ByQueues | None = None,
    ) -> None:
        """Register a policy under a name.

        Args:
            name: what users call it.
            factory: makes it.
            help: one line that says what it is.
            options: what can be set.
            clairvoyant: lets it see how long jobs run; reports say so.
            running: the jobs that run already according to the manifests, if the policy takes them over.
            ignored_fields: which fields of the manifests the policy ignores; becomes warnings of a run.
            never: which jobs the policy rejects because they can never start; they are named before a replay.
            record: it does what the trace says happened: its jobs have `recorded` runs and end with the last
                of these, nothing limits what it starts, and what is beyond the cluster's capacity is counted.
            by_queues: whether it admits jobs by the ClusterQueues of a cluster: an ElasticQuota that is
                called like a job's queue is then not enough, and a replay of such a job is refused.
        """
        owner = self.owner
        spec = PolicySpec(
            name,
            factory,
            help,
            tuple(options),
            clairvoyant,
            owner.name,
            owner.version,
            running,
            ignored_fields,
            never,
            owner.module,
            record,
            by_queues,
        )
        self.registry.add(spec)


class RegisterReader(Registrar[ReaderSpec]):
    """What `harness_register_readers` gets."""

    def __call__(
        self,
        name: str,
        read: Callable[[Path, Mapping[str, Any]], Reading],
        *,
        help: str,
        suffixes: Iterable[str] = (),
        sniff: Callable[[Path, bytes], bool] | None = None,
        options: Iterable[Option] = (),
        folder: Callable[[Path], bool] | None = None,
    ) -> None:
        """Register a reader of a foreign trace format."""
        owner = self.owner
        about = (name, read, help, tuple(suffixes), sniff, tuple(options), owner.name, owner.version)
        self.registry.add(ReaderSpec(*about, folder))


class RegisterMetric(Registrar[MetricSpec]):
    """What `harness_register_metrics` gets."""

    def __call__(self, name: str, compute: Compute, *, help: str) -> None:
        """Register a metric, or a family of metrics that are computed together."""
        owner = self.owner
        self.registry.add(MetricSpec(name, compute, help, owner.name, owner.version, owner.module))
