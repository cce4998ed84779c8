"""The plan of a replay: all inputs that determine its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import OptionError
from harness.base.tables import schemas
from harness.base.text import printable
from harness.base.units import format_duration
from harness.base.values import Value, fixed
from harness.cluster.content import content
from harness.cluster.derive import plain_stem
from harness.runs.cache import Lasting
from harness.runs.dump_changes import not_as_it_was
from harness.runs.epochs import events, summary
from harness.runs.identity import Code, code_of_harness, code_of_policy
from harness.runs.questions import assumptions, ignored_fields, running_jobs
from harness.runs.settings import Settings
from harness.trace.schema import STARTUP

if TYPE_CHECKING:
    from harness.cluster.model import Cluster
    from harness.plugins.registries import PolicySpec
    from harness.policy import Policy
    from harness.runs.at_start import AtStart
    from harness.runs.estimates.run_times import RunTimesOfWork
    from harness.runs.impossible import Impossible
    from harness.trace.shake import Twin
    from harness.trace.trace import Trace

TWINS = ".twins"
"""The folder next to the runs of a trace that contains the twins of these runs as `.twins/RUN/TWIN`."""

ALONE = ".alone"
"""The folder next to the runs of a trace that contains the replays of single quotas."""

_TWIN = "twin"

_contents: Lasting[dict[str, Any]] = Lasting()


@fixed(slots=False)
class Plan(Value):
    """A replay that hasn't run yet, with all inputs that determine its result.

    Attributes:
        cluster: the cluster to schedule on, with its initial work.
        label: the name of this replay, which is the name of the policy unless the user chose another one.
        settings: how jobs arrive, start, lose work and end.
        at_start: how work in the manifests takes part.
        played: the trace whose jobs arrive, which is `trace` itself or its twin.
        work: how long unfinished work in the manifests runs.
        twin: the version of the trace with slightly shifted arrivals to replay, or None for the trace itself.
        observe: wraps the policy in an observer, which does not affect the result.
        alone: the only quota on the cluster, with only its jobs in the trace, or None for all quotas.
    """

    trace: Trace
    cluster: Cluster
    policy: PolicySpec
    label: str
    options: Mapping[str, Any]
    settings: Settings
    at_start: AtStart
    played: Trace
    work: RunTimesOfWork
    twin: Twin | None = None
    observe: Callable[[Policy], Policy] | None = None
    alone: str | None = None

    def __post_init__(self) -> None:
        """Check that a plan that replays a record does not scale or shake arrivals.

        Raises:
            OptionError: the arrivals of a record would be scaled or shaken.
        """
        scaled = self.settings.scale_arrivals != 1
        if self.policy.record and (scaled or self.twin is not None):
            changed = "scaled" if scaled else "shaken"
            raise OptionError(f"{self.policy.name} repeats recorded events, so arrivals cannot be {changed}")

    def with_settings(self, settings: Settings) -> Plan:
        """Returns the plan with other settings. They must not change which work in the manifests takes part.

        All values that are derived from trace, cluster and policy are reused.

        Raises:
            OptionError: the policy repeats recorded events, but the settings scale the arrivals.
        """
        other = replace(self, settings=settings)
        other.__dict__.update(code=self.code, impossible=self.impossible, content=self.content)
        return other

    @property
    def by_elastic_quotas(self) -> bool:
        """True if jobs count against ElasticQuotas when the cluster has both kinds of quotas."""
        return self.policy.admits_by_elastic_quotas(self.cluster)

    @property
    def recorded(self) -> dict[str, Any]:
        """The choices for this replay as plain values. Rarely used choices appear only if they were made."""
        from harness.trace.calibration import calibration_of

        changed = calibration_of(self.trace, self.cluster)
        return {
            **dict(self.settings.recorded()),
            **self.at_start.settings,
            **self.work.settings,
            **({"calibration": dict(changed)} if changed else {}),
            **({} if self.twin is None else {_TWIN: str(self.twin)}),
            **({} if self.alone is None else {"alone": self.alone}),
            **({"ignore_events": True} if self.settings.ignore_events and self.cluster.changes else {}),
        }

    @property
    def identity(self) -> dict[str, Any]:
        """All inputs that determine the result and the texts of the run."""
        trace, policy = self.trace, self.policy
        ours, theirs = self.code
        return {
            "schema": schemas.VERSION,
            "trace": [trace.sha256, trace.digest, dict(trace.left_out), trace.notes, dict(trace.metadata)],
            "cluster": self.cluster.digest,
            **({} if self.at_start.later is None else {"later": self.at_start.later.digest}),
            "said": [self.cluster.assumed, self.warnings],
            **({"assumed": self.assumed} if self.assumed else {}),
            "policy": [policy.name, policy.owner, policy.version, policy.clairvoyant],
            **({"record": True} if policy.record else {}),
            "options": dict(self.options),
            "code": [ours.sha256, theirs.sha256],
            **self.recorded,
        }

    @cached_property
    def code(self) -> tuple[Code, Code]:
        """The code of `harness` and the code of the policy, which make or record decisions."""
        return code_of_harness(), code_of_policy(self.policy)

    @cached_property
    def content(self) -> dict[str, Any]:
        """The content of the cluster, as stored in `run.json`."""
        return _contents.answer(self.trace, self.cluster, lambda: content(self.cluster))

    @property
    def unknown_code(self) -> str:
        """The reason why the code is unknown, so that no stored run is reused; "" if the code is known."""
        return next((code.unknown for code in self.code if code.unknown), "")

    @cached_property
    def impossible(self) -> tuple[Impossible, ...]:
        """The jobs that the policy rejects because they can never start, by reason."""
        from harness.runs.impossible import impossible

        return impossible(self.trace, self.cluster, self.policy, self.options) or ()

    @property
    def begins(self) -> str:
        """A sentence that says how the replay begins.

        If the policy takes over no work from the manifests, the sentence says so.
        """
        begins = self.at_start.begins
        if begins and self.at_start.takes_part and not self._taken:
            return f"{begins}; the plugin {self.policy.name} takes over none of them"
        return begins

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The changes of the cluster, as stored in `run.json`."""
        return events(self.cluster, by_elastic_quotas=self.by_elastic_quotas)

    @property
    def changing(self) -> str:
        """A sentence about the changes of the cluster, or "" if there are none."""
        told = summary(self.events)
        return f"the cluster changes over time: {told}" if told else ""

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about inputs that have no effect in this replay, or that are left out."""
        from harness.runs.impossible import sentences
        from harness.runs.inputs import without_queues
        from harness.trace.job_rows import count_jobs
        from harness.trace.warnings import unreached

        found = [*without_queues(self.trace, self.cluster, self.policy)]
        found += [*self.cluster.warnings, *unreached(self.trace, self._whole), *self.at_start.left_out]
        found += sentences(self.impossible, count_jobs(self.trace.frame))
        found += self._nothing_played()
        found += self._startup_of_the_trace()
        found += self._other_algorithm()
        found += not_as_it_was(self._worlds, self._taken, self.policy)
        found += ignored_fields(self.policy, self.cluster, self.options)
        return tuple(found)

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """Sentences about the policy's assumptions, which fill gaps in the manifests."""
        return tuple(assumptions(self.policy, self.cluster, self.options))

    @property
    def _whole(self) -> Cluster:
        """The cluster with all work in the manifests that takes part, whether at the beginning or later."""
        later = self.at_start.later
        return self.cluster if later is None else replace(self.cluster, pods=self.cluster.pods + later.pods)

    def _nothing_played(self) -> Iterator[str]:
        """Warn if the replay ends before any job arrives or the cluster changes.

        The scaling of arrivals starts at the first arrival, so it does not change the time of this arrival.
        """
        if (until := self.settings.until) is None:
            return
        first: Any = self.trace.frame["submit_time"].to_physical().min()
        after = int(first) - self.trace.origin
        if until < after:
            yield (
                f"nothing happens until {format_duration(until)}, because the first job is submitted "
                f"{format_duration(after)} after simulated time begins"
            )
        if self.cluster.changes and until < self.cluster.changes[0][0]:
            yield (
                f"no event happens until {format_duration(until)}, because the cluster first changes "
                f"{format_duration(self.cluster.changes[0][0])} after simulated time begins"
            )

    def _startup_of_the_trace(self) -> Iterator[str]:
        if self.settings.startup and STARTUP in self.trace.frame.columns:
            chosen = format_duration(self.settings.startup)
            yield f"setting 'startup' ({chosen}) has no effect, because the trace has a column '{STARTUP}'"

    def _other_algorithm(self) -> Iterator[str]:
        """Warn if the manifests select another policy, which `auto` would use."""
        scheduler, name = self.cluster.scheduler, self.policy.name
        if scheduler is None or scheduler.preemption_algorithm is None:
            return
        if name not in ("auto", scheduler.plugin):
            yield (
                f"KubeSchedulerConfiguration: preemptionAlgorithm {scheduler.preemption_algorithm} "
                f"selects the plugin {scheduler.plugin}, but {name} ignores this setting"
            )

    @property
    def _worlds(self) -> list[Cluster]:
        return [each for each in (self.cluster, self.at_start.later) if each is not None]

    @cached_property
    def _taken(self) -> frozenset[str]:
        return frozenset(job.id for each in self._worlds for job, *_ in running_jobs(self.policy, each, 0))

    @cached_property
    def run_name(self) -> str:
        """The name of the run folder. Equal inputs result in equal names."""
        return self._name(self.identity)

    @property
    def folder(self) -> Path:
        """The folder of the run, relative to the folder of all results.

        Twins and replays of single quotas are in hidden folders, so that a pattern such as `results/philly/*`
        does not match them.
        """
        if self.alone is not None:
            return Path(self.trace_name, ALONE, self.run_name)
        if self.twin is None:
            return Path(self.trace_name, self.run_name)
        return self.twins / self.run_name

    @property
    def twins(self) -> Path:
        """The folder with the twins of the run, relative to the folder of all results.

        Twins are replays with slightly shifted arrivals.
        """
        unshaken = {name: value for name, value in self.identity.items() if name != _TWIN}
        return Path(self.trace_name, TWINS, self._name(unshaken))

    def _name(self, identity: Mapping[str, Any]) -> str:
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=str)
        return f"{self._called}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    @property
    def _called(self) -> str:
        """The policy and the label: PLUGIN, PLUGIN@LABEL, or PLUGIN@NAME.

        NAME is the name of the cluster or patch if there are several.
        """
        name = self.policy.name
        own = self.label == name or self.label.startswith(f"{name}@")
        return self.label if own else f"{name}@{self.label}"

    @property
    def trace_name(self) -> str:
        """The folder for runs of this trace, which is a safe form of the file name without suffixes."""
        return printable(plain_stem(self.trace.path).strip(".")) or "trace"
