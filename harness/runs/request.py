"""Requests for replays, which can be stored, compared, and carried out in any process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from harness.base.errors import InputError, OptionError
from harness.base.frozen import Frozen
from harness.base.options import factor, policy_options, resolve
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
"""How long a preempted pod keeps its resources by default, as in Kubernetes."""

_unrolled: Lasting[Cluster] = Lasting()


@fixed(slots=False)
class Request(Value):
    """A request for a replay, with all choices. It checks everything that can be checked without files.

    A request can be pickled if its content can. This is true for traces and clusters in memory, and for
    classes that their module contains under their name.

    Attributes:
        trace: a trace, or a trace file in the canonical Parquet schema or in any format that a reader
            supports.
        plugin: the name of a registered policy, or your own policy class. None selects the policy that the
            manifests specify.
        cluster: manifests (a file or a folder), or a cluster. None stands for `<trace>.cluster.yaml` beside
            the trace, or for a cluster derived from the trace if that file does not exist.
        options: the options of the policy that were given.
        label: the name of the run; None for the name of the policy.
        on_preemption: what a preempted job loses.
        grace_period: the grace period of jobs that don't specify one, in microseconds.
        startup: how long pods take to become ready if the trace has no start-up times, in microseconds.
        until: the last simulated time, in microseconds since the origin; None simulates until the end.
        scale_arrivals: the factor by which jobs arrive faster.
        calibration: changes to the trace and the cluster.
        output: the folder for results; the run is stored in `<output>/<trace>/<run>`.
        force: whether to replay even if the same run already exists.
        keep: which parts of the run to keep: `all`, only the `metrics` (with `run.json`), or `nothing`.
        at_start: how the replay begins: `empty` or with the `dump`. None means that the dates decide.
        unfinished: how long unfinished work in the manifests runs: `draw`, `drop`, `limit`, or a duration.
        seed: the seed for the draws of `unfinished`.
        twin: the replayed twin of the trace; None for the trace itself.
        alone: a ClusterQueue or ElasticQuota to replay alone, which means only its jobs with only its nominal
            quota; None for all jobs and quotas.
        ignore_events: whether a plugin that does not support cluster changes is replayed without them.
            Otherwise, such a plugin is an error.
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
        """Convert texts to values. For the arguments, see `harness.replay`.

        Raises:
            OptionError: a choice is out of range or has the wrong type.
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
        """Returns the plan of the replay, after reading and checking all of its inputs.

        Raises:
            InputError: the trace, the manifests or an option can't be used. The error lists all faults
                together.
            PolicyError: the policy does not support the changes of the cluster.
        """
        from harness.runs.hearing import check_heard
        from harness.trace.homes import homed
        from harness.trace.recorded import check_recorded

        policy = None if self.plugin is None else _policy(self.plugin, plugins)
        if policy is not None and isinstance(self.trace, Path):
            look_at(policy)  # before the trace is read, because the file may be edited meanwhile
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
        """Returns the twin of a trace that is replayed.

        Raises:
            OptionError: the twin redraws priorities that this request does not set.
        """
        from harness.trace.homes import homed

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
        from harness.runs.request_json import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Request:
        """Make a request from the values that `to_json` returns. Only the trace is required.

        Raises:
            OptionError: the value is not a request, or a choice is out of range.
        """
        from harness.runs.request_json import values_of

        return cls(**values_of(document))


def _label_of(policy: PolicySpec) -> str:
    """Returns the default label of a run, which is the name of its policy.

    Raises:
        OptionError: the policy's name is not a valid label, as is the case for a lambda.
    """
    try:
        return checked_label(policy.name)
    except OptionError as error:
        raise OptionError(f"the run has no label, and {error}", hint="give one: label='mine'") from error


def _policy(plugin: str | PolicyFactory, plugins: Plugins) -> PolicySpec:
    """Returns the policy for a name, a class or a function.

    Raises:
        PluginError: no policy has this name.
        OptionError: the class declares invalid options.
    """
    if isinstance(plugin, str):
        return plugins.policy(plugin)
    name = getattr(plugin, "__name__", type(plugin).__name__)
    try:
        options = policy_options(getattr(plugin, "options", ()))
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
