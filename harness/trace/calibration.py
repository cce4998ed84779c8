"""Applies a user's changes to a trace and its cluster before a replay, in a fixed order, and records them.

The changes have the same order as the fields of `Calibration`. Priorities are set before tenants. The reason
is that the queues of many traces represent priorities, and another column contains the tenants. Arrivals are
scaled last, when `harness.trace.jobs` creates the jobs. `harness.cluster.changes.scale` scales the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Protocol

import polars as pl

from harness.base.errors import Fault, TraceError
from harness.base.options import factor
from harness.base.units import SECOND
from harness.base.values import Value, fixed
from harness.cluster.changes.scale import scaled_cluster
from harness.cluster.model import Cluster
from harness.trace.failures import Failures
from harness.trace.priorities import PriorityFrom, PriorityShare
from harness.trace.sample import Sample
from harness.trace.tenants import Tenants
from harness.trace.trace import Trace
from harness.trace.window import Window


class Step(Protocol):
    """A change of a trace. `str` returns it in the form in which users write it."""

    def changed(self, trace: Trace) -> tuple[pl.DataFrame, str]:
        """Returns the changed rows, and a sentence about the change.

        Raises:
            InputError: the trace lacks data that the step needs.
        """


@fixed()
class Calibration(Value):
    """Explicit changes to the input of a replay. By default, there are none.

    Attributes:
        window: keeps only the jobs that were submitted in a span of time.
        sample: keeps a random share of the jobs, each with all its pods.
        priority_from: sets priorities by the values of a column.
        priority_share: gives a priority to a random share of each queue's jobs.
        tenants: how to derive a job's tenant, for example from another column, by keeping the largest queues,
            or by hashing.
        scale_cluster: the factor by which nodes and quotas are multiplied.
        failures: how often nodes fail, and for how long.
    """

    window: Window | None = None
    sample: Sample | None = None
    priority_from: PriorityFrom | None = None
    priority_share: PriorityShare | None = None
    tenants: Tenants | None = None
    scale_cluster: Fraction = Fraction(1)
    failures: Failures | None = None

    @classmethod
    def parse(cls, **texts: str | None) -> Calibration:
        """Parse the user's text for each field. Omitted fields are None.

        Raises:
            OptionError: a text is invalid.
        """
        parsers = {
            "window": Window.parse,
            "sample": Sample.parse,
            "priority_from": PriorityFrom.parse,
            "priority_share": PriorityShare.parse,
            "tenants": Tenants.parse,
            "failures": Failures.parse,
            "scale_cluster": _scale,
        }
        given = {name: parsers[name](text) for name, text in texts.items() if text is not None}
        return cls(**given)  # type: ignore[arg-type]

    def texts(self) -> dict[str, str]:
        """Returns the text of each field that is set."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: str(value) for name, value in given.items() if value is not None}

    def of_trace(self, trace: Trace) -> Trace:
        """Apply every step to a trace.

        The attributes `calibration` and `notes` of the result record the steps, and `left_out` counts the
        dropped rows.

        Raises:
            InputError: a step does not fit the trace, or no job remains.
        """
        for item in fields(self):
            step = getattr(self, item.name)
            if step is not None and item.name not in ("failures", "scale_cluster"):
                trace = self._applied(item.name, step, trace)
        if self.failures is None:
            return trace
        return replace(trace, calibration={**trace.calibration, "failures": str(self.failures)})

    def of_cluster(self, cluster: Cluster, trace: Trace | None = None) -> Cluster:
        """Returns the scaled cluster.

        If the calibration has failures, its nodes also fail during the replay of the trace.

        Raises:
            InputError: the failures do not fit the cluster.
        """
        scaled = scaled_cluster(cluster, self.scale_cluster)
        return scaled if self.failures is None or trace is None else self.failures.over(scaled, trace)

    def _applied(self, name: str, step: Step, trace: Trace) -> Trace:
        option = f"--{name.replace('_', '-')} {step}"
        frame, sentence = step.changed(trace)
        if not frame.height:
            raise TraceError(str(trace.path), [Fault(option, "leaves no job")])
        gone = trace.frame.height - frame.height
        first: int = frame["submit_time"].to_physical().min()  # type: ignore[assignment]
        moves = trace.kind == "timestamp" or self.window is not None
        return replace(
            trace,
            frame=frame,
            origin=first // SECOND * SECOND if moves else trace.origin,
            left_out={**trace.left_out, **({f"by {option}": gone} if gone else {})},
            notes=(*trace.notes, f"{option}: {sentence}"),
            calibration={**trace.calibration, name: str(step)},
        )


def calibration_of(trace: Trace, cluster: Cluster) -> Mapping[str, str]:
    """Returns the text of each change to a trace and a cluster. Without changes, the result is empty."""
    scale = {"scale_cluster": str(cluster.scale)} if cluster.scale != 1 else {}
    return {**trace.calibration, **scale}


def _scale(text: str) -> Fraction:
    return factor(
        "the cluster cannot be scaled by",
        text,
        hint="2 doubles the nodes and quotas, and 1/8 reduces them to an eighth",
    )
