"""A replay that is asked for: a value that can be kept, compared and made in any process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import partial
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from harness.base.errors import InputError, OptionError
from harness.base.frozen import Frozen
from harness.base.options import declared_options, did_you_mean, factor, resolve
from harness.base.units import LONGEST, SECOND, parse_duration
from harness.base.values import Value, fixed
from harness.cluster.changes.edits import ever
from harness.engine.losses import Losses, parse_losses
from harness.plugins import Plugins, load
from harness.plugins.registries import PolicySpec
from harness.runs.arguments import check_arguments
from harness.runs.at_start import WORLDS, at_start
from harness.runs.cache import Lasting
from harness.runs.estimates.run_times import DRAW, Material, beginning, checked_unfinished
from harness.runs.execution import execute
from harness.runs.identity import look_at
from harness.runs.inputs import check_fit, cluster_for, default_plugin, read_trace
from harness.runs.labels import checked_label
from harness.runs.one_quota import alone, faults
from harness.runs.plan import Plan
from harness.runs.run import Keep, Run
from harness.trace.calibration import Calibration

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.policy import PolicyFactory
    from harness.trace.shake import Twin
    from harness.trace.trace import Trace

GRACE_PERIOD = 30 * SECOND
"""How long a preempted pod keeps its resources when neither trace nor user says: Kubernetes' default."""

_unrolled: Lasting[Cluster] = Lasting()

_SCHEMA = "1"
_IN_JSON: Mapping[str, tuple[type, ...]] = {
    "plugin": (str, NoneType),
    "cluster": (str, NoneType),
    "options": (dict,),
    "label": (str, NoneType),
    "grace_period": (int, str),
    "startup": (int, str),
    "until": (int, str, NoneType),
    "scale_arrivals": (int, float, str),
    "calibration": (dict, NoneType),
    "force": (bool,),
    "ignore_events": (bool,),
    "at_start": (str, NoneType),
    "seed": (int,),
    "twin": (str, NoneType),
    "alone": (str, NoneType),
}
"""What choices may be in JSON where they are not texts."""


@fixed(slots=False)
class Request(Value):
    """A replay that is asked for, with every choice; what can be checked without files is.

    It can be pickled if what is in it can: traces and clusters in memory can, and so can classes that are
    found by their name in a module.

    Attributes:
        trace: a trace file, in the canonical Parquet schema or in any format that a reader knows, or a trace.
        plugin: a registered policy's name, or a policy class of your own; None for the one that the manifests
            select.
        cluster: manifests, a file or a folder, or a cluster; None for `<trace>.cluster.yaml` beside the
            trace, else one made from the trace.
        options: the policy's options that are given.
        label: what to call the run; None for the policy's name.
        on_preemption: what a preempted job loses.
        grace_period: for jobs that do not say, microseconds.
        startup: how long pods take until they are ready, for traces that do not say, microseconds.
        until: the last instant to play, microseconds since the origin; None plays to the end.
        scale_arrivals: how many times as fast jobs arrive.
        calibration: what to change of the trace and the cluster.
        output: the run becomes the folder `<output>/<trace>/<run>`.
        force: replay even if the same run is there already.
        keep: `all`, only the `metrics` (with `run.json`), or `nothing`.
        at_start: `empty` or `dump`, which world the replay begins in; None for what the dates say.
        unfinished: how long unfinished work of the manifests runs: `draw`, `drop`, `limit`, or a duration.
        seed: of what is drawn for it.
        twin: which twin of the trace is replayed; None for the trace itself.
        alone: a ClusterQueue or ElasticQuota: only its jobs are replayed, with no more than its nominal
            quota; None for all jobs and quotas.
        ignore_events: whether a plugin that does not hear of what changes of the cluster is replayed as if
            nothing changed; otherwise it is an error.
    """

    trace: Path | Trace
    plugin: str | PolicyFactory | None
    cluster: Path | Cluster | None
    options: Mapping[str, Any]
    label: str | None
    on_preemption: Losses
    grace_period: int
    startup: int
    until: int | None
    scale_arrivals: Fraction
    calibration: Calibration | None
    output: Path
    force: bool
    keep: Keep
    at_start: str | None
    unfinished: str
    seed: int
    twin: Twin | None
    alone: str | None
    ignore_events: bool

    def __init__(
        self,
        trace: str | Path | Trace,
        *,
        plugin: str | PolicyFactory | None = None,
        cluster: str | Path | Cluster | None = None,
        options: Mapping[str, Any] | None = None,
        label: str | None = None,
        on_preemption: str | Losses = "restart",
        grace_period: str | int = GRACE_PERIOD,
        startup: str | int = 0,
        until: str | int | None = None,
        scale_arrivals: str | float | Fraction = 1,
        calibration: Calibration | None = None,
        output: str | Path = "results",
        force: bool = False,
        keep: Keep = "all",
        at_start: str | None = None,
        unfinished: str = DRAW,
        seed: int = 0,
        twin: str | Twin | None = None,
        alone: str | None = None,
        ignore_events: bool = False,
    ) -> None:
        """Texts become what they stand for; see `harness.replay` for the arguments.

        Raises:
            OptionError: a choice is out of its range, or of no type that it can have.
        """
        check_arguments(
            {
                "trace": trace,
                "plugin": plugin,
                "cluster": cluster,
                "options": options,
                "label": label,
                "on_preemption": on_preemption,
                "calibration": calibration,
                "output": output,
                "twin": twin,
                "alone": alone,
                "force": force,
                "ignore_events": ignore_events,
                "unfinished": unfinished,
                "seed": seed,
            }
        )
        if keep not in get_args(Keep):
            raise OptionError(f"keep: {keep!r} is not one of {', '.join(get_args(Keep))}")
        if at_start not in (None, *WORLDS):
            raise OptionError(f"at start: {at_start!r} is not one of {', '.join(WORLDS)}")
        hint = "2 lets jobs arrive twice as fast, 0.5 half as fast"
        chosen: dict[str, object] = {
            "trace": Path(trace) if isinstance(trace, str) else trace,
            "plugin": plugin,
            "cluster": Path(cluster) if isinstance(cluster, str) else cluster,
            "options": Frozen(options or {}),
            "label": None if label is None else checked_label(label),
            "on_preemption": parse_losses(on_preemption) if isinstance(on_preemption, str) else on_preemption,
            "grace_period": _microseconds("grace period", grace_period),
            "startup": _microseconds("startup", startup),
            "until": None if until is None else _microseconds("until", until),
            "scale_arrivals": factor("arrivals cannot be scaled by", scale_arrivals, hint=hint),
            "calibration": calibration,
            "output": Path(output),
            "force": force,
            "keep": keep,
            "at_start": at_start,
            "unfinished": checked_unfinished(unfinished),
            "seed": int(seed),
            "twin": _twin(twin) if isinstance(twin, str) else twin,
            "alone": alone,
            "ignore_events": ignore_events,
        }
        for name, value in chosen.items():
            object.__setattr__(self, name, value)

    @property
    def called(self) -> str:
        """What it is called in messages."""
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
        """Carry it out; where the same run is there already, answer that one.

        Args:
            plugins: what `harness.plugins.load()` gave; loaded when absent.
            plan: what `plan` made of this request before, for those who have looked at it already.
            watch: called now and then with the simulated time and the number of jobs that have arrived.
            command: the command line that reproduces the run, for its provenance.

        Raises:
            OptionError: an argument is of no type that it can have.
            InputError: the trace, the manifests or an option cannot be used; all faults at once.
            DecisionError: the policy decided what cannot be.
            PolicyError: the policy raised an error of its own.
            RunError: the run folder cannot be written.
            PluginError: a plugin failed in one of its hooks; after the replay the run is there all the same.
        """
        check_arguments({"plugins": plugins, "watch": watch})
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
        """The replay with all that it depends on, read and checked.

        Raises:
            InputError: the trace, the manifests or an option cannot be used; all faults at once.
            PolicyError: the policy does not follow what changes of the cluster.
        """
        from harness.runs.hearing import check_heard
        from harness.trace.homes import homed
        from harness.trace.recorded import check_recorded

        policy = None if self.plugin is None else _policy(self.plugin, plugins)
        if policy is not None and isinstance(self.trace, Path):
            look_at(policy)  # before the trace is read: somebody may edit it meanwhile
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
            losses=self.on_preemption,
            grace_period=self.grace_period,
            startup=self.startup,
            until=self.until,
            scale_arrivals=self.scale_arrivals,
            at_start=begun,
            played=trace
            if self.twin is None
            else self._shaken(self.twin, trace, begun.cluster, plugins, by_elastic_quotas=elastic),
            work=work,
            twin=self.twin,
            alone=self.alone,
            ignore_events=self.ignore_events,
        )
        check_heard(plan)
        return plan

    def _shaken(
        self, twin: Twin, trace: Trace, cluster: Cluster, plugins: Plugins, *, by_elastic_quotas: bool
    ) -> Trace:
        """The twin of a trace as it is replayed.

        Raises:
            OptionError: priorities are to be shaken that this request does not give.
        """
        from harness.trace.homes import homed

        changed = twin.calibration(self.calibration)
        if changed is not None and changed.priority_share != (self.calibration or changed).priority_share:
            trace = homed(read_trace(self.trace, plugins, changed), cluster)
            if self.alone is not None:
                trace, _ = alone(trace, cluster, self.alone, by_elastic_quotas=by_elastic_quotas)
        return twin.of(trace)

    def to_json(self) -> dict[str, Any]:
        """The request as plain values that JSON has; `from_json` makes it again.

        Paths stay as they are: relative ones are those of the process that carries it out.

        Raises:
            OptionError: something in it is in memory only; says what.
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
                f"request {self.called} has no JSON: {', '.join(kept)}",
                hint="give paths, registered plugins, and options as texts; pickle takes values in memory",
            )
        texts = {"trace": str(self.trace), "cluster": None if self.cluster is None else str(self.cluster)}
        return {
            "schema": _SCHEMA,
            **{item.name: getattr(self, item.name) for item in fields(self)},
            **texts,
            "options": dict(self.options),
            "on_preemption": str(self.on_preemption),
            "scale_arrivals": str(self.scale_arrivals),
            "calibration": steps,
            "output": str(self.output),
            "twin": None if self.twin is None else str(self.twin),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Request:
        """A request from what `to_json` gave; a trace is all that it must name.

        Raises:
            OptionError: it is no request, or a choice is out of its range.
        """
        if not isinstance(document, Mapping):
            raise OptionError(
                f"a request is read from a mapping, and this is {_about(document)}",
                hint="of a text, json.loads makes one",
            )
        values = {**document}
        if values.pop("schema", None) != _SCHEMA:
            raise OptionError(f"this is no request of schema {_SCHEMA!r}", hint="Request.to_json() makes one")
        known = [item.name for item in fields(cls)]
        for name, value in values.items():
            if name not in known:
                raise OptionError(f"a request has no {name!r}", hint=did_you_mean(str(name), known))
            if not isinstance(value, _IN_JSON.get(name, str)):
                raise OptionError(f"request: {name} cannot be {value!r}")
        if "trace" not in values:
            raise OptionError("a request must name a trace")
        return cls(**{**values, "calibration": _calibration(values.get("calibration"))})


def _label_of(policy: PolicySpec) -> str:
    """What a run is called by its policy.

    Raises:
        OptionError: a policy has a name that cannot be a label, such as that of a lambda.
    """
    try:
        return checked_label(policy.name)
    except OptionError as error:
        raise OptionError(f"the run has no label, and {error}", hint="give one: label='mine'") from error


def _policy(plugin: str | PolicyFactory, plugins: Plugins) -> PolicySpec:
    """The policy of a name, or of a class or function.

    Raises:
        PluginError: there is no policy of that name.
        OptionError: the class declares options that cannot be.
    """
    if isinstance(plugin, str):
        return plugins.policy(plugin)
    name = getattr(plugin, "__name__", type(plugin).__name__)
    try:
        options = declared_options(getattr(plugin, "options", ()))
    except OptionError as error:
        raise OptionError(f"policy {name}: {error.message}", hint=error.hint) from error
    return PolicySpec(name, plugin, "", options, bool(getattr(plugin, "clairvoyant", False)), "", "")


def _microseconds(what: str, value: str | int) -> int:
    try:
        time = parse_duration(value) if isinstance(value, str) else value
    except InputError as error:
        raise OptionError(f"{what}: {error}") from error
    if type(time) is not int or time < 0:
        raise OptionError(f"{what}: {value!r} is not a duration of 0 or more microseconds")
    if time > LONGEST:
        raise OptionError(f"{what}: {value} is longer than 100 years")
    return time


def _twin(text: str) -> Twin:
    from harness.trace.shake import Twin

    return Twin.parse(text)


def _calibration(steps: Mapping[str, Any] | None) -> Calibration | None:
    """A calibration of the texts of its steps.

    Raises:
        OptionError: there is no such step, or a text is not understood.
    """
    known = [item.name for item in fields(Calibration)]
    for name, text in (steps or {}).items():
        if name not in known:
            raise OptionError(f"calibration has no {name!r}", hint=did_you_mean(str(name), known))
        if not isinstance(text, str):
            raise OptionError(f"calibration: {name} cannot be {text!r}")
    return None if steps is None else Calibration.parse(**steps)


def _is_plain(value: object) -> bool:
    """Whether JSON has a value, and gives it back as it was."""
    return value is None or type(value) in (str, bool, int) or (type(value) is float and isfinite(value))


def _about(value: object) -> str:
    """A value in memory, for messages."""
    name = getattr(value, "__qualname__", None)
    return f"{type(value).__name__} {name}" if name else f"a {type(value).__name__}"
