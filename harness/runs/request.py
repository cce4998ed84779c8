"""Requests for replays. A request can be stored, compared, and carried out in any process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Unpack, get_args

from harness.base.errors import OptionError
from harness.base.frozen import Frozen
from harness.base.names import checked_label
from harness.base.options import did_you_mean, policy_options, resolve
from harness.base.values import fixed
from harness.cluster.changes.edits import ever
from harness.plugins import Plugins, load
from harness.plugins.registries import PolicySpec
from harness.runs.arguments import check_arguments
from harness.runs.at_start import at_start
from harness.runs.cache import Lasting
from harness.runs.engines import check_heard
from harness.runs.estimates.run_times import Material, beginning
from harness.runs.execution import execute
from harness.runs.identity import look_at
from harness.runs.inputs import check_fit, cluster_for, default_plugin, read_trace
from harness.runs.one_quota import alone, faults
from harness.runs.plan import Plan
from harness.runs.run import Keep, Run
from harness.runs.settings import SETTINGS, Given, Settings, takes_settings
from harness.trace.calibration import Calibration
from harness.trace.homes import homed
from harness.trace.recorded import check_recorded

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.policy import PolicyFactory
    from harness.trace.shake import Twin
    from harness.trace.trace import Trace

_unrolled: Lasting[Cluster] = Lasting()

_SCHEMA = "1"
_IN_JSON: Mapping[str, tuple[type, ...]] = {
    "plugin": (str, NoneType),
    "cluster": (str, NoneType),
    "options": (dict,),
    "label": (str, NoneType),
    "calibration": (dict, NoneType),
    "force": (bool,),
    "twin": (str, NoneType),
    "alone": (str, NoneType),
}
"""Maps each choice that is not necessarily a text to its JSON types. Settings check their own types."""


@fixed(slots=False)
class Request(Settings):
    """A request for a replay, with its settings and all other choices.

    A new request checks everything that can be checked without files.

    A request can be pickled if its content can be pickled. This is true for traces and clusters in memory,
    and for classes that can be found by name in their module.

    For the meaning of the fields, see `harness.replay`. Files and folders are paths.

    Attributes:
        alone: a ClusterQueue or ElasticQuota to replay alone, which means only its jobs with only its nominal
            quota, or None for all jobs and quotas.
    """

    trace: Path | Trace
    plugin: str | PolicyFactory | None
    cluster: Path | Cluster | None
    options: Mapping[str, Any]
    label: str | None
    calibration: Calibration | None
    output: Path
    force: bool
    keep: Keep
    twin: Twin | None
    alone: str | None

    @takes_settings
    def __init__(
        self,
        trace: str | Path | Trace,
        *,
        plugin: str | PolicyFactory | None = None,
        cluster: str | Path | Cluster | None = None,
        options: Mapping[str, Any] | None = None,
        label: str | None = None,
        calibration: Calibration | None = None,
        output: str | Path = "results",
        force: bool = False,
        keep: Keep = "all",
        twin: str | Twin | None = None,
        alone: str | None = None,
        **settings: Unpack[Given],
    ) -> None:
        """Convert texts to values. For the arguments, see `harness.replay`.

        Raises:
            OptionError: a choice is out of range or has the wrong type.
        """
        check_arguments(locals())
        if keep not in get_args(Keep):
            raise OptionError(f"keep: {keep!r} is not one of {', '.join(get_args(Keep))}")
        chosen: dict[str, object] = {
            "trace": Path(trace) if isinstance(trace, str) else trace,
            "plugin": plugin,
            "cluster": Path(cluster) if isinstance(cluster, str) else cluster,
            "options": Frozen(options or {}),
            "label": None if label is None else checked_label(label),
            "calibration": calibration,
            "output": Path(output),
            "force": force,
            "keep": keep,
            "twin": _twin(twin) if isinstance(twin, str) else twin,
            "alone": alone,
            **Settings.checked(settings).values(),
        }
        for name, value in chosen.items():
            object.__setattr__(self, name, value)

    @property
    def settings(self) -> Settings:
        """The settings of the replay, which do not include the trace, the plugin and the cluster."""
        return Settings(**self.values())

    @property
    def called(self) -> str:
        """The name of the request in messages."""
        name = self.plugin if isinstance(self.plugin, str) else getattr(self.plugin, "__name__", None)
        called = self.label or name or "the plugin that the manifests select"
        called = called if self.twin is None else f"{called}, twin {self.twin.number}"
        return called if self.alone is None else f"{called}, {self.alone} alone"

    def run(
        self,
        *,
        plugins: Plugins | None = None,
        plan: Plan | None = None,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Carry out the request, or return the run if it is already stored.

        Args:
            plugins: the result of `harness.plugins.load()`. By default, the plugins are loaded.
            plan: the result of an earlier call of `plan` on this request.
            watch: a function that is called from time to time with the simulated time and the number of jobs
                that have arrived.
            command: the command line that reproduces the run, for its provenance.

        Raises:
            OptionError: an argument has the wrong type.
            InputError: the trace, the manifests or an option can't be used. The error lists all faults
                together.
            DecisionError: the policy made an impossible decision.
            PolicyError: the policy raised an error of its own.
            RunError: the run folder can't be written.
            PluginError: a plugin failed in one of its hooks. If it failed after the replay, the run is
                stored.
        """
        check_arguments(locals())
        plugins = plugins or load()
        run = execute(
            plan or self.plan(plugins),
            plugins,
            output=self.output,
            force=self.force,
            keep=self.keep,
            watch=watch,
            command=command,
        )
        run.request = self
        return run

    def plan(self, plugins: Plugins) -> Plan:
        """Returns the plan of the replay, after reading and checking all of its inputs.

        Raises:
            InputError: the trace, the manifests or an option can't be used. The error lists all faults
                together.
            PolicyError: the policy does not support the changes of the cluster.
        """
        policy = None if self.plugin is None else _policy(self.plugin, plugins)
        if policy is not None and isinstance(self.trace, Path):
            look_at(policy)  # Do this before the trace is read, because the file may be edited meanwhile.
        trace = read_trace(self.trace, plugins, self.calibration)
        drawn = self.calibration if self.twin is None else self.twin.calibration(self.calibration)
        cluster = cluster_for(self.cluster, trace, drawn)
        if cluster.timed:
            from harness.cluster.changes.over_time import unrolled

            begins = (trace.origin, 0) if trace.kind == "timestamp" else (None, trace.origin)
            cluster = _unrolled.answer(trace, cluster, partial(unrolled, cluster, *begins))
        policy = policy or _policy(default_plugin(cluster), plugins)
        check_fit(trace, cluster, by_queues=policy.admits_by_queues(cluster))
        trace = homed(trace, ever(cluster))
        if policy.record:
            check_recorded(trace)
        begun, work = beginning(
            at_start(cluster, trace, self.at_start),
            Material(cluster, trace, policy, plugins),
            self.unfinished,
            self.seed,
            self.twin,
        )
        cluster = begun.cluster
        elastic = policy.admits_by_elastic_quotas(cluster)
        if self.alone is not None:
            if why := "; ".join(faults(policy, begun)):
                raise OptionError(f"{policy.name} cannot be replayed with {self.alone!r} alone: {why}")
            trace, cluster = alone(trace, cluster, self.alone, by_elastic_quotas=elastic)
        called = policy.name if self.label in (None, policy.name) else f"{policy.name}@{self.label}"
        plan = Plan(
            trace=trace,
            cluster=cluster,
            policy=policy,
            label=checked_label(self.label) if self.label else _label_of(policy),
            options=resolve(policy.options, self.options, owner=f"policy {called}"),
            at_start=begun,
            played=trace
            if self.twin is None
            else self._shaken(self.twin, trace, begun.cluster, plugins, by_elastic_quotas=elastic),
            work=work,
            settings=self.settings,
            twin=self.twin,
            alone=self.alone,
        )
        check_heard(plan)
        return plan

    def _shaken(
        self, twin: Twin, trace: Trace, cluster: Cluster, plugins: Plugins, *, by_elastic_quotas: bool
    ) -> Trace:
        """Returns the twin of a trace, which is replayed instead of the trace."""
        changed = twin.calibration(self.calibration)
        if changed is not None and changed.priority_share != (self.calibration or changed).priority_share:
            trace = homed(read_trace(self.trace, plugins, changed), cluster)
            if self.alone is not None:
                trace, _ = alone(trace, cluster, self.alone, by_elastic_quotas=by_elastic_quotas)
        return twin.of(trace)

    def to_json(self) -> dict[str, Any]:
        """Returns the request as plain JSON values, which `from_json` can read.

        Relative paths remain relative to the process that carries out the request.

        Raises:
            OptionError: a part of the request exists only in memory. The message names that part.
        """
        steps = None if self.calibration is None else self.calibration.texts()
        kept = [
            f"{name} is {_about(value)}"
            for name, value, portable in (
                ("trace", self.trace, isinstance(self.trace, Path)),
                ("cluster", self.cluster, self.cluster is None or isinstance(self.cluster, Path)),
                ("plugin", self.plugin, self.plugin is None or isinstance(self.plugin, str)),
                ("calibration", self.calibration, _calibration(steps) == self.calibration),
                *((f"option {name}", value, _is_plain(value)) for name, value in self.options.items()),
            )
            if not portable
        ]
        if kept:
            raise OptionError(
                f"request {self.called} cannot be written as JSON: {', '.join(kept)}",
                hint="give paths, registered plugins and options as strings; only pickle can store values in "
                "memory",
            )
        return {
            "schema": _SCHEMA,
            **{name: getattr(self, name) for name in _PARTS},
            **self.settings.texts(),
            "trace": str(self.trace),
            "cluster": None if self.cluster is None else str(self.cluster),
            "options": dict(self.options),
            "calibration": steps,
            "output": str(self.output),
            "twin": None if self.twin is None else str(self.twin),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Request:
        """Make a request from the values that `to_json` returns. Only the trace is required.

        Raises:
            OptionError: the value is not a request, or a choice is out of range.
        """
        if not isinstance(document, Mapping):
            raise OptionError(
                f"a request is read from a mapping, but this is {_about(document)}",
                hint="json.loads makes a mapping from a string",
            )
        values = {**document}
        if values.pop("schema", None) != _SCHEMA:
            raise OptionError(
                f"this is not a request of schema {_SCHEMA!r}", hint="Request.to_json() makes one"
            )
        known = [*_PARTS, *SETTINGS]
        for name, value in values.items():
            if name not in known:
                raise OptionError(f"a request has no {name!r}", hint=did_you_mean(str(name), known))
            if name not in SETTINGS and not isinstance(value, _IN_JSON.get(name, str)):
                raise OptionError(f"request: {name} cannot be {value!r}")
        if "trace" not in values:
            raise OptionError("a request must name a trace")
        return cls(**{**values, "calibration": _calibration(values.get("calibration"))})


_PARTS = [part.name for part in fields(Request) if part.name not in SETTINGS]


def _label_of(policy: PolicySpec) -> str:
    try:
        return checked_label(policy.name)
    except OptionError as error:
        raise OptionError(f"the run has no label, and {error}", hint="give one: label='mine'") from error


def _policy(plugin: str | PolicyFactory, plugins: Plugins) -> PolicySpec:
    """Returns the policy for a name, a class or a function."""
    if isinstance(plugin, str):
        return plugins.policy(plugin)
    name = getattr(plugin, "__name__", type(plugin).__name__)
    try:
        options = policy_options(getattr(plugin, "options", ()))
    except OptionError as error:
        raise OptionError(f"policy {name}: {error.message}", hint=error.hint) from error
    return PolicySpec(name, plugin, "", options, bool(getattr(plugin, "clairvoyant", False)))


def _twin(text: str) -> Twin:
    from harness.trace.shake import Twin

    return Twin.parse(text)


def _calibration(steps: Mapping[str, Any] | None) -> Calibration | None:
    """Returns a calibration from the texts of its steps."""
    known = [item.name for item in fields(Calibration)]
    for name, text in (steps or {}).items():
        if name not in known:
            raise OptionError(f"calibration has no {name!r}", hint=did_you_mean(str(name), known))
        if not isinstance(text, str):
            raise OptionError(f"calibration: {name} cannot be {text!r}")
    return None if steps is None else Calibration.parse(**steps)


def _is_plain(value: object) -> bool:
    """Returns True if a value is the same after it is stored as JSON."""
    return value is None or type(value) in (str, bool, int) or (type(value) is float and isfinite(value))


def _about(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return f"{type(value).__name__} {name}" if name else f"a {type(value).__name__}"
