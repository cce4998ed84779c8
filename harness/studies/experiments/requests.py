"""Builds the requests of an experiment from inputs that are read only once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.base.errors import OptionError, SpecError
from harness.base.memo import Memo
from harness.base.options import did_you_mean
from harness.base.units import parse_duration
from harness.cluster.changes.knob_values import is_knob, turned
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.plugins.registries import Registry
from harness.runs.identity import code_of_harness, code_of_policy, code_of_room
from harness.runs.plan import Plan
from harness.runs.replaying import measured_by
from harness.runs.request import Request
from harness.runs.settings import SETTINGS as OF_REPLAY
from harness.studies.experiments.specification import (
    CLUSTER,
    OWN,
    PATCH,
    PLUGIN,
    SEED,
    SHAKE,
    TRACE,
    WEEKS,
    Arm,
    Point,
    Spec,
    Value,
)
from harness.trace.calibration import Calibration
from harness.trace.demand import derived_cluster
from harness.trace.generate.bootstrap import redrawn
from harness.trace.shake import Twin
from harness.trace.tenants import Tenants
from harness.trace.trace import Trace

REQUESTED: Mapping[str, str] = {
    name.replace("_", "-"): name for name in OF_REPLAY if name not in ("seed", "ignore_events")
}
"""Maps settings of a replay to their names in requests. Seeds are drawn, and events are never ignored."""

STEPS: Mapping[str, str] = {name.replace("_", "-"): name for name in Calibration.__dataclass_fields__}
"""Maps settings that change the trace or the cluster size to their names in calibrations."""

SETTINGS = (*REQUESTED, *STEPS)

GIVEN = frozenset({TRACE, *SETTINGS} - {"scale-cluster"})
"""The factors that describe the jobs or what happens to them, not the scheduler or the cluster."""

TENANTS = "tenants"
"""The setting whose value may name files."""

_ROWS, _CLUSTERS = 1_000_000, 24
_LENGTH = 32
_SHORTER = (
    "'seeds: {count: 10, weeks: 1d}' draws days, and '1h' draws hours; a trace ends at its last submission"
)


@dataclass(frozen=True)
class Inputs:
    """The inputs of an experiment. They are read once and sent to the processes that make items.

    Attributes:
        traces: the content of each trace file, by label.
        clusters: the cluster from manifests, by label. None stands for the trace's own cluster.
        own: the cluster from the manifests next to each trace, by the trace's label. The cluster is None or
            missing if there are no such manifests, or if all clusters are given.
        patches: the documents of each patch, by label. None stands for no patch.
        tenants: each value of `tenants` in any item, with the content of the files that it names.
    """

    spec: Spec
    plugins: Plugins
    traces: Mapping[str, Trace]
    clusters: Mapping[str, Cluster | None]
    own: Mapping[str, Cluster | None]
    patches: Mapping[str, Sequence[Mapping[str, Any]] | None]
    tenants: Mapping[str, Tenants]


class Bench:
    """Makes the requests of an experiment. Parts that requests share are made once and kept for a while."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, self.spec = inputs, inputs.spec
        self.plugins = measuring(inputs.plugins, inputs.spec.metrics)
        few = max(2, _ROWS // max(trace.frame.height for trace in inputs.traces.values()))
        self._traces: Memo[Hashable, Trace] = Memo(few)
        # Only a few plans are kept, because each of them holds a trace.
        self._plans: Memo[Hashable, Plan] = Memo(few)
        self._clusters: Memo[Hashable, Cluster] = Memo(_CLUSTERS)
        self._arms = {arm.label: arm for arm in self.spec.arms}
        self._codes: dict[str, str] = {}
        self._sums: dict[str | None, str] = {}

    def arm(self, point: Point) -> Arm:
        """Returns the plugin of a point."""
        return self._arms[str(point[PLUGIN])]

    def applies(self, name: str, point: Point) -> bool:
        """Returns True if a factor applies to a point. An option applies only to plugins that have it."""
        if name in (*OWN, *SETTINGS) or is_knob(name):
            return True
        return self._option(name, self.arm(point)) is not None

    def check_name(self, name: str) -> None:
        """Raises an error unless a factor is a setting, a field of the manifests, or an option of a plugin.

        Raises:
            OptionError: the name is none of these. The message suggests a similar name.
        """
        if any(self.applies(name, {PLUGIN: arm.label}) for arm in self.spec.arms):
            return
        options = [each.name for arm in self.spec.arms for each in self.plugins.policy(arm.plugin).options]
        labels = ", ".join(arm.label for arm in self.spec.arms)
        raise OptionError(
            f"{name} is not a setting of a replay, a knob of the cluster, or an option of {labels}",
            hint=did_you_mean(name.rpartition(".")[2], [*SETTINGS, *options]),
        )

    def request(self, point: Point, *, output: Path = Path("results")) -> Request:
        """Returns the request for the replay of a point.

        Raises:
            InputError: a value can't be used, or does not fit the inputs.
        """
        arm, settings = self.arm(point), self._settings(point)
        options = dict(arm.options)
        for name, value in point.items():
            option = None if name in SETTINGS or is_knob(name) else self._option(name, arm)
            if option is not None and value is not None:
                options[option] = value
        chosen: dict[str, Any] = {
            argument: settings[name] for name, argument in REQUESTED.items() if name in settings
        }
        return Request(
            self.trace(point),
            plugin=arm.plugin,
            cluster=self.cluster(point),
            options=options,
            label=arm.label,
            seed=int(point.get(SEED) or 0),
            output=output,
            keep="all" if self.spec.keep == "all" else "nothing",
            **chosen,
        )

    def plan(self, point: Point, request: Request) -> Plan:
        """Returns the plan for the replay of a point, after reading and checking all inputs.

        Points that differ only in settings of the replay share the parts that do not depend on these
        settings.

        `request` is the result of the method `request` for this point.

        Raises:
            InputError: the inputs do not fit together.
        """
        settings = self._settings(point)
        options = (
            item for item in point.items() if item[0] not in (*OWN, *SETTINGS) and not is_knob(item[0])
        )
        key = (
            *(self._trace_key(point), self._cluster_key(point), self.arm(point).label, *sorted(options)),
            *(settings.get("at-start"), settings.get("unfinished"), request.seed),
        )
        if key not in self._plans:
            self._plans[key] = self.planned(request)
        return self._plans[key].with_settings(request.settings)

    def planned(self, request: Request) -> Plan:
        """Returns the plan of a request.

        Raises:
            InputError: the inputs do not fit together. Or the run times of some jobs are unknown, so waits
                and losses would have no meaning.
        """
        plan = request.plan(self.plugins)
        if plan.work.unknown:
            raise OptionError(
                f"{plan.work.unknown}, so waits and losses would have no meaning",
                hint="the setting 'unfinished' says how long these jobs run, such as 2h, or drops the jobs",
            )
        return plan

    def trace(self, point: Point) -> Trace:
        """Returns the trace of a point, after the calibration and the draw with the point's seed.

        Raises:
            InputError: a step can't be parsed, or does not fit the trace.
        """
        key = self._trace_key(point)
        if key not in self._traces:
            self._traces[key] = self._made_trace(point, self._steps(point), self._drawn(point))
        return self._traces[key]

    def cluster(self, point: Point) -> Cluster:
        """Returns the cluster of a point, with the point's scale, patch and fields of the manifests.

        Raises:
            InputError: a patch or a value does not fit.
        """
        key = self._cluster_key(point)
        if key not in self._clusters:
            base = self._manifests(point)
            whole = derived_cluster(self.trace({**point, SEED: None})) if base is None else base
            scale = Calibration.parse(scale_cluster=self._steps(point).get("scale_cluster"))
            found = scale.of_cluster(whole)
            documents = self.inputs.patches[self._label(PATCH, point)]
            patched = found if documents is None else found.patched(documents)
            self._clusters[key] = self._failing(turned(patched, _knobs(point)), point)
        return self._clusters[key]

    def _failing(self, cluster: Cluster, point: Point) -> Cluster:
        text = self._steps(point).get("failures")
        if text is None:
            return cluster
        calibration, seed = Calibration.parse(failures=text), self._drawn(point)
        if seed is not None:
            calibration = Twin(seed).calibration(calibration) or calibration
        return calibration.of_cluster(cluster, self.trace({**point, SEED: None}))

    def key(self, point: Point) -> str:
        """Returns the key of an item, which is equal for equal inputs, settings and code."""
        arm, seeds = self.arm(point), self.spec.seeds
        trace, base = self.inputs.traces[self._label(TRACE, point)], self._manifests(point)
        request_settings = {name: text for name, text in self._settings(point).items() if name in REQUESTED}
        options = {
            name: value
            for name, value in point.items()
            if value is not None and name not in SETTINGS and not is_knob(name) and self._option(name, arm)
        }
        told = {
            "trace": [trace.sha256, trace.digest, dict(trace.left_out), trace.notes, dict(trace.metadata)],
            "steps": self._steps(point),
            "maps": self._maps(self._steps(point).get(TENANTS)),
            "drawn": None if seeds is None else [seeds.of, seeds.by, self._drawn(point)],
            "cluster": None if base is None else [base.digest, base.warnings, base.assumed],
            "patch": self.inputs.patches[self._label(PATCH, point)],
            "knobs": _knobs(point),
            "settings": request_settings,
            "plugin": arm.plugin,
            "options": [dict(arm.options), options],
            "code": self._code(arm.plugin),
            "keep": self.spec.keep,
        }
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), default=str)
        return sha256(text.encode()).hexdigest()[:_LENGTH]

    def _trace_key(self, point: Point) -> Hashable:
        return (self._label(TRACE, point), *sorted(self._steps(point).items()), self._drawn(point))

    def _cluster_key(self, point: Point) -> Hashable:
        """Returns a key that contains everything on which a point's cluster depends.

        Without manifests, the cluster is derived from the trace before a seed draws anything from it, so that
        all seeds use the same cluster.
        """
        label, trace = self._label(CLUSTER, point), self._label(TRACE, point)
        beside = trace if self.inputs.clusters[label] is None else None
        made_of = self._trace_key({**point, SEED: None}) if self._manifests(point) is None else None
        scale = self._steps(point).get("scale_cluster")
        fails = "failures" in self._steps(point)
        drawn = (self._trace_key({**point, SEED: None}), self._drawn(point)) if fails else None
        return (
            label,
            beside,
            self._label(PATCH, point),
            *sorted(_knobs(point).items()),
            scale,
            made_of,
            drawn,
        )

    def _made_trace(self, point: Point, steps: Mapping[str, str], seed: int | None) -> Trace:
        seeds = self.spec.seeds
        if seeds is not None and seed is not None:
            record = self.trace({**point, SEED: None})
            if seeds.of == SHAKE:
                return Twin.parse(f"{seed},{seeds.by}").of(record)
            try:
                return redrawn(record, parse_duration(seeds.by), seed)
            except SpecError as error:
                raise SpecError(error.source, error.faults, hint=_SHORTER) from error
        texts = {name: text for name, text in steps.items() if name not in ("scale_cluster", TENANTS)}
        tenants = self.inputs.tenants[steps[TENANTS]] if TENANTS in steps else None
        calibration = replace(Calibration.parse(**texts), tenants=tenants)
        return calibration.of_trace(self.inputs.traces[self._label(TRACE, point)])

    def _maps(self, text: str | None) -> str:
        if text not in self._sums:
            maps = {} if text is None else self.inputs.tenants[text].maps
            told = json.dumps([sorted(each.items()) for each in maps.values()])
            self._sums[text] = sha256(told.encode()).hexdigest() if maps else ""
        return self._sums[text]

    def _manifests(self, point: Point) -> Cluster | None:
        given = self.inputs.clusters[self._label(CLUSTER, point)]
        return self.inputs.own.get(self._label(TRACE, point)) if given is None else given

    # --- what a point says --------------------------------------------------------------------------------

    def _label(self, name: str, point: Point) -> str:
        """Returns the label of a point's input. If there is only one input, a point need not name it."""
        several: Mapping[str, Any] = {
            TRACE: self.inputs.traces,
            CLUSTER: self.inputs.clusters,
            PATCH: self.inputs.patches,
        }[name]
        return str(point.get(name, next(iter(several))))

    def _settings(self, point: Point) -> dict[str, str]:
        varied = {name: str(value) for name, value in point.items() if name in SETTINGS and value is not None}
        return {**self.spec.settings, **varied}

    def _steps(self, point: Point) -> dict[str, str]:
        """Returns the steps of a point's calibration, including any step that uses the seed."""
        settings = self._settings(point)
        found = {argument: settings[name] for name, argument in STEPS.items() if name in settings}
        seeds, seed = self.spec.seeds, point.get(SEED)
        if seeds is not None and seeds.of not in (WEEKS, SHAKE) and seed is not None:
            found[STEPS[seeds.of]] = f"{seeds.by}@{seed}"
        return found

    def _drawn(self, point: Point) -> int | None:
        """Returns the seed that draws weeks or a twin from the calibrated trace, or None for other draws."""
        seeds, seed = self.spec.seeds, point.get(SEED)
        of_trace = seeds is not None and seeds.of in (WEEKS, SHAKE)
        return seed if of_trace and isinstance(seed, int) else None

    def _option(self, name: str, arm: Arm) -> str | None:
        names = {option.name for option in self.plugins.policy(arm.plugin).options}
        if name in names:
            return name
        prefix, _, option = name.rpartition(".")
        return option if prefix in (arm.label, arm.plugin) and option in names else None

    def _code(self, plugin: str) -> str:
        """Returns a hash of the code that draws, decides, records and measures."""
        if plugin not in self._codes:
            policy = self.plugins.policy(plugin)
            codes = [code_of_harness(), code_of_policy(policy), code_of_room("trace/generate")]
            unknown = next((code.unknown for code in codes if code.unknown), "")
            if unknown:
                raise OptionError(
                    f"{plugin}: cannot continue the experiment, as the plugin's code is unknown: {unknown}",
                    hint="define the policy in a module, and import the module again after each change",
                )
            told = [[code.sha256 for code in codes], policy.version, measured_by(self.plugins)]
            self._codes[plugin] = sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
        return self._codes[plugin]


def _knobs(point: Point) -> dict[str, Value]:
    return {name: value for name, value in point.items() if is_knob(name)}


def measuring(plugins: Plugins, families: Sequence[str]) -> Plugins:
    """Returns the plugins without the metrics of other families. If the list is empty, all families remain.

    Raises:
        OptionError: there is no such family.
    """
    if not families:
        return plugins
    chosen: Registry[Any] = Registry("metric")
    for name in dict.fromkeys(families):
        spec = plugins.metrics.get(name)
        if spec is None:
            raise OptionError(
                f"metrics: there is no family {name!r}", hint=did_you_mean(name, plugins.metrics.names())
            )
        chosen.add(spec)
    return replace(plugins, metrics=chosen)
