"""Replay recorded job traces through models of real cluster schedulers, and compare what they do.

    import harness

    run = harness.replay("traces/philly.parquet", plugin="none")
    run.jobs                                   # a polars frame, one row per job
    harness.compare([run, other_run])          # one table

For plugin authors, this module also exports the types of policies and decisions, `Option`, and `hookimpl`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.base.errors import (
    ClusterError,
    Fault,
    HarnessError,
    InputError,
    OptionError,
    PolicyError,
    TraceError,
)
from harness.base.options import Option, boolean
from harness.cluster.model import Cluster
from harness.plugins import Plugins
from harness.plugins.hookspecs import hookimpl
from harness.plugins.measurement import Measurement, Window
from harness.plugins.reading import Reading
from harness.plugins.registries import MetricSpec, PolicySpec, ReaderSpec, Register
from harness.policy import (
    Admit,
    Bind,
    Decision,
    Foresight,
    Job,
    Never,
    Nominate,
    Note,
    PodSet,
    Policy,
    PolicyFactory,
    Possible,
    Preempt,
    QueueShare,
    Refuse,
    Reject,
    Unnominate,
    View,
    Wake,
    Why,
)

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.analysis.explanation.explain import explain
    from harness.api import (
        compare,
        forecast,
        idle_causes,
        isolated,
        make_report,
        replay,
        replay_all,
        simulate,
        sweep,
        tune,
    )
    from harness.runs.plan import Plan
    from harness.runs.request import Request
    from harness.runs.run import Run
    from harness.studies.benchmark.evaluate import Evaluation, evaluate
    from harness.studies.experiments.experiment import Experiment
    from harness.studies.forecasting.forecast import Forecast
    from harness.studies.simulation.answer import Simulation
    from harness.studies.tuning.result import Tuned

_LAZY = {
    "Tuned": "harness.studies.tuning.result",
    "Simulation": "harness.studies.simulation.answer",
    "Forecast": "harness.studies.forecasting.forecast",
    "evaluate": "harness.studies.benchmark.evaluate",
    "Evaluation": "harness.studies.benchmark.evaluate",
    "Experiment": "harness.studies.experiments.experiment",
    "Request": "harness.runs.request",
    "Comparison": "harness.analysis.comparison",
    "explain": "harness.analysis.explanation.explain",
    "Plan": "harness.runs.plan",
    "Run": "harness.runs.run",
}
"""Public names -> their modules, which import polars; a name is loaded on first use. The other names of
`__all__` that this module does not import are in `harness.api`.
"""

__all__ = [
    "Admit", "Bind", "Cluster", "ClusterError", "Comparison", "Decision", "Evaluation", "Experiment", "Fault",
    "Forecast", "Foresight", "HarnessError", "InputError", "Job", "Measurement", "MetricSpec", "Never",
    "Nominate", "Note", "Option", "OptionError", "Plan", "Plugins", "PodSet", "Policy", "PolicyError",
    "PolicyFactory", "PolicySpec", "Possible", "Preempt", "QueueShare", "ReaderSpec", "Reading", "Refuse",
    "Register", "Reject", "Request", "Run", "Simulation", "TraceError", "Tuned", "Unnominate", "View", "Wake",
    "Why", "Window", "boolean", "compare", "evaluate", "explain", "forecast", "hookimpl", "idle_causes",
    "isolated", "make_report", "replay", "replay_all", "simulate", "sweep", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(_LAZY.get(name, "harness.api")), name)
    if name == "__version__":
        from importlib.metadata import version  # takes longer to import than all of help

        return version("harness-replay")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names, including those that are loaded on first use."""
    return sorted({*globals(), *__all__, "__version__"})
