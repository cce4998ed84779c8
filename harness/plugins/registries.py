"""Stores the registrations of plugins by kind, each with the plugin that owns it.

The `__call__` of a registrar is the only definition of what plugins can register for its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from harness.base.errors import OptionError, PluginError, RegistrationError
from harness.base.names import RULE, is_name
from harness.base.options import Option, declared_options, policy_options
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
    """The plugin that makes a registration. `module` is "" if the plugin is a Python object in memory."""

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
    """The registrations of one kind, by name and with their owners."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._specs: dict[str, SpecT] = {}

    def __iter__(self) -> Iterator[SpecT]:
        return iter(sorted(self._specs.values(), key=lambda spec: spec.name))

    def __contains__(self, name: str) -> bool:
        return name in self._specs

    def add(self, spec: SpecT) -> None:
        """Add a registration.

        Raises:
            PluginError: another plugin has registered the name. The message names both plugins.
            RegistrationError: the same plugin has already registered the name.
        """
        taken = self._specs.get(spec.name)
        if taken is not None and taken.owner == spec.owner:
            raise RegistrationError(f"plugin {spec.owner!r} registers {self.kind} {spec.name!r} twice")
        if taken is not None:
            raise PluginError(
                f"{self.kind} {spec.name!r} is registered by both {taken.owner!r} and {spec.owner!r}",
                hint=f"leave one of them out, for example with --no-plugin {spec.owner}",
            )
        self._specs[spec.name] = spec

    def get(self, name: str) -> SpecT | None:
        """Returns the registration with this name, or None."""
        return self._specs.get(name)

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self._specs)

    def drop_owner(self, owner: str) -> None:
        """Remove all registrations of one plugin."""
        self._specs = {name: spec for name, spec in self._specs.items() if spec.owner != owner}


class Registrar(Generic[SpecT]):
    """Adds registrations of one kind for the plugin whose hook receives it."""

    def __init__(self, owner: Owner, registry: Registry[SpecT]) -> None:
        self.owner = owner
        self.registry = registry

    def about(self, name: object) -> Registration:
        """Returns a checker for the registration of a name."""
        return Registration(self.owner.name, self.registry.kind, name)


class Registration:
    """Checks a registration, and names the plugin, the kind and the name in faults.

    Args:
        owner: the plugin.
        kind: the kind of registration.
        name: the name.
    """

    def __init__(self, owner: str, kind: str, name: object) -> None:
        self._owner, self._kind, self._name = owner, kind, name

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        """Raise an error with a reason.

        Raises:
            RegistrationError: always.
        """
        raise RegistrationError(
            f"plugin {self._owner!r} registers {self._kind} {self._name!r}: {why}", hint=hint
        )

    def named(self) -> None:
        """Check that users can type the name and that file names can contain it."""
        if not is_name(self._name):
            self.refuse(f"a name is {RULE}")

    def texts(self, **values: object) -> None:
        """Check that each value is a string."""
        for what, value in values.items():
            if not isinstance(value, str):
                self.refuse(f"{what} must be a string, but is {_about(value)}")

    def functions(self, **values: object) -> None:
        """Check that each value is callable."""
        for what, value in values.items():
            if not callable(value):
                self.refuse(f"{what} must be a function, but is {_about(value)}")

    def functions_or_none(self, **values: object) -> None:
        """Check that each value is callable or None."""
        self.functions(**{what: value for what, value in values.items() if value is not None})

    def flags(self, **values: object) -> None:
        """Check that each value is True or False."""
        for what, value in values.items():
            if not isinstance(value, bool):
                self.refuse(f"{what} must be True or False, but is {_about(value)}")

    def several(self, what: str, value: object) -> tuple[str, ...]:
        """Check that the value consists of non-empty strings, and return them."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            self.refuse(f"{what} must be several strings, such as a tuple, but is {_about(value)}")
        found = tuple(value)
        if not all(isinstance(each, str) and each for each in found):
            self.refuse(f"{what} must be non-empty strings, but are {found!r}")
        return found

    def options(
        self, value: object, declared: Callable[[object], tuple[Option, ...]] = declared_options
    ) -> tuple[Option, ...]:
        """Check that the value consists of options with different names, and return them."""
        try:
            return declared(value)
        except OptionError as error:
            self.refuse(error.message, error.hint)


def _about(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


@fixed()
class PolicySpec(Value):
    """A registered policy, with its factory, its properties and its plugin.

    `module` is the module of an installed plugin, or "" if the plugin is a Python object in memory. With
    `record`, the policy makes no decisions of its own, but repeats the trace's recorded events.
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
        """Returns True if the queue of every job must lead to a ClusterQueue of the cluster."""
        return self.by_queues is not None and self.by_queues(cluster)

    def admits_by_elastic_quotas(self, cluster: Cluster) -> bool:
        """Returns True if jobs count against the elastic quotas of a cluster that also has ClusterQueues."""
        return self.by_elastic_quotas is not None and self.by_elastic_quotas(cluster)


@fixed()
class ReaderSpec(Value):
    """A registered trace reader; `suffixes` and `sniff` determine which files it reads.

    `sniff` receives the path and the first 4 KiB of the file, decompressed. harness calls it only if the
    suffix of the file doesn't identify a reader. `folder` returns whether the reader can read a folder as a
    trace, although most readers read only files. `advise` returns advice about a file or folder that no
    reader accepts, or None. `draft` returns a first mapping for the columns of a file or folder.
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
    """A registered metric, or family of metrics, of a finished run; see `PolicySpec` for `module`."""

    name: str
    compute: Compute
    help: str
    owner: str
    version: str
    module: str = ""


class RegisterPolicy(Registrar[PolicySpec]):
    """Registers a policy; passed to `harness_register_policies`."""

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
            name: the name that users type.
            factory: a function or class that creates the policy.
            help: a description of the policy in one line.
            options: the options of the policy.
            clairvoyant: whether the policy sees the run times of jobs. Reports mention this.
            running: a function that returns the jobs that already run according to the manifests, if the
                policy takes over these jobs.
            ignored_fields: a function that returns sentences about manifest fields that the policy ignores.
                Runs show these sentences as warnings.
            never: a function that returns another function, which finds jobs that can never start. harness
                reports these jobs before a replay.
            record: whether the policy repeats the trace's recorded events. Its jobs then have `recorded` runs
                and end with the last of them. Starts have no limits, and harness counts usage that exceeds
                the cluster's capacity.
            by_queues: a function that returns whether the policy admits jobs through the ClusterQueues of a
                cluster. If so, harness refuses to replay a job for whose queue there is only an ElasticQuota.
            by_elastic_quotas: a function that returns whether the policy uses the elastic quotas of a cluster
                that also has ClusterQueues. Metrics then use the elastic quotas.
            assumes: a function that returns sentences about assumptions that fill gaps in the manifests.
                harness prints these sentences before a replay and stores them in the run.

        Raises:
            RegistrationError: the registration is invalid; names the plugin.
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
            about.options(options, policy_options),
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
    """Registers a reader; passed to `harness_register_readers`."""

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
        """Register a reader of a trace format.

        Raises:
            RegistrationError: the registration is invalid; names the plugin.
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
    """Registers a metric; passed to `harness_register_metrics`."""

    def __call__(self, name: str, compute: Compute, *, help: str) -> None:
        """Register a metric, or a family of metrics that are computed together.

        Raises:
            RegistrationError: the registration is invalid; names the plugin.
        """
        owner, about = self.owner, self.about(name)
        about.named()
        about.texts(help=help)
        about.functions(compute=compute)
        self.registry.add(MetricSpec(name, compute, help, owner.name, owner.version, owner.module))
