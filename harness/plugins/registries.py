"""Stores the registrations of plugins by kind, each with the plugin that owns it.

A plugin registers one specification at a time. The class of the specification says what plugins can register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Self, TypeVar

from harness.base.errors import OptionError, PluginError, RegistrationError, blamed_on
from harness.base.names import RULE, is_name
from harness.base.options import Option, declared_options, policy_options
from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
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


@fixed()
class Spec(Value):
    """The base class of what plugins register. harness sets the plugin's name, version and module.

    Attributes:
        name: the name that users type.
        owner: the name of the plugin.
        version: the version of the plugin.
        module: the module of an installed plugin, or "" if the plugin is a Python object in memory.
    """

    name: str
    owner: str = field(default="", kw_only=True)
    version: str = field(default="", kw_only=True)
    module: str = field(default="", kw_only=True)

    def checked(self, about: Registration) -> Self:
        """Returns the specification after a check, with each list of values as a tuple.

        Raises:
            RegistrationError: a field has a wrong type or value. The message names the plugin.
        """
        about.named()
        return self


SpecT = TypeVar("SpecT", bound=Spec)


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


class Register(Generic[SpecT]):
    """Registers specifications of one kind for the plugin whose hook receives it.

    Args:
        owner: the plugin.
        registry: the registrations of all plugins.
        of: the class of the specifications.
    """

    def __init__(self, owner: Owner, registry: Registry[SpecT], of: type[SpecT]) -> None:
        self._owner, self._registry, self._of = owner, registry, of

    def __call__(self, spec: SpecT, *others: object) -> None:
        """Register a specification, such as a `PolicySpec` in `harness_register_policies`.

        Raises:
            PluginError: another plugin has registered the name.
            RegistrationError: the specification is invalid. The message names the plugin.
        """
        about = Registration(self._owner.name, self._registry.kind, getattr(spec, "name", None))
        if others or not isinstance(spec, self._of):
            given = f"{1 + len(others)} values are given" if others else f"the given value is {_about(spec)}"
            about.refuse(f"register takes one {self._of.__name__}, but {given}")
        owner, version, module = self._owner
        self._registry.add(replace(spec.checked(about), owner=owner, version=version, module=module))


class Registration:
    """Checks a registration, and names the plugin, the kind and the name in faults.

    Args:
        owner: the plugin.
        kind: the kind of registration.
        name: the name.
    """

    def __init__(self, owner: str, kind: str, name: object) -> None:
        self.owner, self._kind, self._name = owner, kind, name

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        """Raise an error with a reason.

        Raises:
            RegistrationError: always.
        """
        raise RegistrationError(
            f"plugin {self.owner!r} registers {self._kind} {self._name!r}: {why}", hint=hint
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
class PolicySpec(Spec):
    """A policy, as a plugin registers it with `harness_register_policies`.

    Attributes:
        factory: a function or class that creates the policy.
        help: a description of the policy in one line.
        options: the options of the policy.
        clairvoyant: whether the policy sees the run times of jobs. Reports mention this.
        running: a function that returns the jobs that already run according to the manifests, if the policy
            takes over these jobs.
        ignored_fields: a function that returns sentences about manifest fields that the policy ignores. Runs
            show these sentences as warnings.
        never: a function that returns another function, which finds jobs that can never start. harness
            reports these jobs before a replay.
        record: whether the policy makes no decisions of its own, but repeats the trace's recorded events. Its
            jobs then have `recorded` runs and end with the last of them. Jobs can start even if no resources
            are free, and harness counts usage that exceeds the cluster's capacity.
        by_queues: a function that returns whether the policy admits jobs through the ClusterQueues of a
            cluster. If so, harness refuses to replay a job whose queue leads only to an ElasticQuota.
        by_elastic_quotas: a function that returns whether the policy uses the elastic quotas of a cluster
            that also has ClusterQueues. Metrics then use the elastic quotas.
        assumes: a function that returns sentences about assumptions that fill gaps in the manifests. harness
            prints these sentences before a replay and stores them in the run.
    """

    factory: PolicyFactory
    help: str
    options: tuple[Option, ...] = ()
    clairvoyant: bool = False
    running: RunningJobs | None = None
    ignored_fields: IgnoredFields | None = None
    never: Foresight | None = None
    record: bool = False
    by_queues: ByQueues | None = None
    by_elastic_quotas: ByElasticQuotas | None = None
    assumes: Assumptions | None = None

    def checked(self, about: Registration) -> PolicySpec:
        """Returns the specification after a check; see `Spec.checked`."""
        about.named()
        about.texts(help=self.help)
        about.functions(factory=self.factory)
        asked = ("running", "ignored_fields", "never", "by_queues", "by_elastic_quotas", "assumes")
        about.functions_or_none(**{name: getattr(self, name) for name in asked})
        about.flags(clairvoyant=self.clairvoyant, record=self.record)
        return replace(self, options=about.options(self.options, policy_options))

    def admits_by_queues(self, cluster: Cluster) -> bool:
        """Returns True if the queue of every job must lead to a ClusterQueue of the cluster."""
        return self._asks("by_queues", self.by_queues, cluster)

    def admits_by_elastic_quotas(self, cluster: Cluster) -> bool:
        """Returns True if jobs count against the elastic quotas of a cluster that also has ClusterQueues."""
        return self._asks("by_elastic_quotas", self.by_elastic_quotas, cluster)

    @property
    def of_plugin(self) -> str:
        """The policy and its plugin, as messages name them."""
        of = f" of plugin {self.owner!r}" if self.owner else ""
        return f"policy {self.name!r}{of}"

    def failing(self, function: str) -> AbstractContextManager[None]:
        """Returns a context in which an error of one of the policy's functions names the policy."""
        return blamed_on(f"{self.of_plugin} failed in its function {function}")

    def _asks(self, name: str, function: Callable[[Cluster], bool] | None, cluster: Cluster) -> bool:
        with self.failing(name):
            return function is not None and function(cluster)


@fixed()
class ReaderSpec(Spec):
    """A reader of a trace format, as a plugin registers it with `harness_register_readers`.

    Attributes:
        read: a function that reads a file with the values of the options.
        help: a description of the format in one line.
        suffixes: the suffixes of the files that the reader reads.
        sniff: a function that returns whether the reader can read a file. It receives the path and the first
            4 KiB of the file, decompressed. harness calls it only if the suffix of the file doesn't identify
            a reader.
        options: the options of the reader.
        folder: a function that returns whether the reader can read a folder as a trace. Most readers read
            only files.
        advise: a function that returns advice about a file or folder that no reader accepts, or None.
        draft: a function that proposes a mapping for the columns of a file or folder, which users can edit.
    """

    read: Callable[[Path, Mapping[str, Any]], Reading]
    help: str
    suffixes: tuple[str, ...] = ()
    sniff: Callable[[Path, bytes], bool] | None = None
    options: tuple[Option, ...] = ()
    folder: Callable[[Path], bool] | None = None
    advise: Callable[[Path], str | None] | None = None
    draft: Callable[[Path], str] | None = None

    def checked(self, about: Registration) -> ReaderSpec:
        """Returns the specification after a check; see `Spec.checked`."""
        about.named()
        about.texts(help=self.help)
        about.functions(read=self.read)
        about.functions_or_none(sniff=self.sniff, folder=self.folder, advise=self.advise, draft=self.draft)
        endings = about.several("suffixes", self.suffixes)
        return replace(self, suffixes=endings, options=about.options(self.options))


@fixed()
class MetricSpec(Spec):
    """A metric of a finished run, as a plugin registers it with `harness_register_metrics`.

    Attributes:
        compute: a function that computes the metric, or a family of metrics, from a run and a window.
        help: a description of the metric in one line.
    """

    compute: Compute
    help: str

    def checked(self, about: Registration) -> MetricSpec:
        """Returns the specification after a check; see `Spec.checked`."""
        about.named()
        about.texts(help=self.help)
        about.functions(compute=self.compute)
        return self
