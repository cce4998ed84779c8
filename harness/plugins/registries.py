"""What plugins register, kind by kind, each thing with the plugin that owns it.

A registrar's `__call__` is the one place that says what can be registered of its kind, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from harness.base.errors import OptionError, PluginError, RegistrationError
from harness.base.names import RULE, is_name
from harness.base.options import Option, declared_options
from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cluster.model import Cluster
    from harness.plugins.measurement import Compute
    from harness.plugins.reading import Reading
    from harness.policy import (
        Assumptions,
        ByElasticQuotas,
        ByQueues,
        Foresight,
        IgnoredFields,
        PolicyFactory,
        RunningJobs,
    )


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
            RegistrationError: the same plugin took it.
        """
        taken = self._specs.get(spec.name)
        if taken is not None and taken.owner == spec.owner:
            raise RegistrationError(f"plugin {spec.owner!r} registers {self.kind} {spec.name!r} twice")
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

    def about(self, name: object) -> Registration:
        """Checks what is registered under a name."""
        return Registration(self.owner.name, self.registry.kind, name)


class Registration:
    """Checks what a plugin registers under a name; a fault names the plugin, the kind and the name.

    Args:
        owner: the plugin.
        kind: of what is registered.
        name: the name.
    """

    def __init__(self, owner: str, kind: str, name: object) -> None:
        self._owner, self._kind, self._name = owner, kind, name

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        """Say what is wrong.

        Raises:
            RegistrationError: always.
        """
        raise RegistrationError(
            f"plugin {self._owner!r} registers {self._kind} {self._name!r}: {why}", hint=hint
        )

    def named(self) -> None:
        """See that the name is one that users can call it by, and that file names can have in them."""
        if not is_name(self._name):
            self.refuse(f"a name is {RULE}")

    def texts(self, **values: object) -> None:
        """See that each is a text."""
        for what, value in values.items():
            if not isinstance(value, str):
                self.refuse(f"{what} must be a text, and is {_about(value)}")

    def functions(self, **values: object) -> None:
        """See that each can be called."""
        for what, value in values.items():
            if not callable(value):
                self.refuse(f"{what} must be a function, and is {_about(value)}")

    def functions_or_none(self, **values: object) -> None:
        """See that each that is not None can be called."""
        self.functions(**{what: value for what, value in values.items() if value is not None})

    def flags(self, **values: object) -> None:
        """See that each is true or false."""
        for what, value in values.items():
            if not isinstance(value, bool):
                self.refuse(f"{what} must be True or False, and is {_about(value)}")

    def several(self, what: str, value: object) -> tuple[str, ...]:
        """Texts, none of them empty."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            self.refuse(f"{what} must be several texts, such as a tuple, and is {_about(value)}")
        found = tuple(value)
        if not all(isinstance(each, str) and each for each in found):
            self.refuse(f"{what} must be texts that are not empty, and are {found!r}")
        return found

    def options(self, value: object) -> tuple[Option, ...]:
        """Options, no two of one name."""
        try:
            return declared_options(value)
        except OptionError as error:
            self.refuse(error.message, error.hint)


def _about(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


@fixed()
class PolicySpec(Value):
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
    by_elastic_quotas: ByElasticQuotas | None = None
    assumes: Assumptions | None = None

    def admits_by_queues(self, cluster: Cluster) -> bool:
        """Whether the queue of every job must lead to a ClusterQueue of a cluster."""
        return self.by_queues is not None and self.by_queues(cluster)

    def admits_by_elastic_quotas(self, cluster: Cluster) -> bool:
        """Whether jobs count against the elastic quotas of a cluster, whatever ClusterQueues it has."""
        return self.by_elastic_quotas is not None and self.by_elastic_quotas(cluster)


@fixed()
class ReaderSpec(Value):
    """A registered trace reader; `suffixes` and `sniff` say which files it is for.

    `sniff` gets the path and the first 4 KiB, decompressed, and is asked only when no suffix decides.
    `folder` says whether a folder is a trace that it reads; most read files only. `advise` says of a file or
    folder that no reader takes what to do about it; None where it does not know. `draft` writes a mapping of
    the columns of a file or folder to start from.
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
    advise: Callable[[Path], str | None] | None = None
    draft: Callable[[Path], str] | None = None


@fixed()
class MetricSpec(Value):
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
        by_elastic_quotas: ByElasticQuotas | None = None,
        assumes: Assumptions | None = None,
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
                of these. Nothing limits what it starts, and what is beyond the cluster's capacity is counted.
            by_queues: whether it admits jobs by the ClusterQueues of a cluster. An ElasticQuota that is
                called like a job's queue is then not enough, and a replay of such a job is refused.
            by_elastic_quotas: whether it goes by the elastic quotas of a cluster, whatever ClusterQueues it
                has; they are then what it is measured against.
            assumes: what it takes to be so because the manifests do not say it; printed before a replay, and
                kept in its run.

        Raises:
            RegistrationError: something of it cannot be registered; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(help=help)
        about.functions(factory=factory)
        about.functions_or_none(
            running=running,
            ignored_fields=ignored_fields,
            never=never,
            by_queues=by_queues,
            by_elastic_quotas=by_elastic_quotas,
            assumes=assumes,
        )
        about.flags(clairvoyant=clairvoyant, record=record)
        spec = PolicySpec(
            name,
            factory,
            help,
            about.options(options),
            clairvoyant,
            owner.name,
            owner.version,
            running,
            ignored_fields,
            never,
            owner.module,
            record,
            by_queues,
            by_elastic_quotas,
            assumes,
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
        advise: Callable[[Path], str | None] | None = None,
        draft: Callable[[Path], str] | None = None,
    ) -> None:
        """Register a reader of a foreign trace format.

        Raises:
            RegistrationError: something of it cannot be registered; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(help=help)
        about.functions(read=read)
        about.functions_or_none(sniff=sniff, folder=folder, advise=advise, draft=draft)
        endings, declared = about.several("suffixes", suffixes), about.options(options)
        of_plugin = (owner.name, owner.version)
        self.registry.add(
            ReaderSpec(name, read, help, endings, sniff, declared, *of_plugin, folder, advise, draft)
        )


class RegisterMetric(Registrar[MetricSpec]):
    """What `harness_register_metrics` gets."""

    def __call__(self, name: str, compute: Compute, *, help: str) -> None:
        """Register a metric, or a family of metrics that are computed together.

        Raises:
            RegistrationError: something of it cannot be registered; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(help=help)
        about.functions(compute=compute)
        self.registry.add(MetricSpec(name, compute, help, owner.name, owner.version, owner.module))
