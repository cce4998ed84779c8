"""What a finished run is the answer to: the request that was made for it, or the same made again."""

from __future__ import annotations

from harness.errors import InputError, RunError
from harness.plugins import Plugins
from harness.runs.request import Request
from harness.runs.run import Run
from harness.trace.calibration import Calibration


def request_of(run: Run, plugins: Plugins) -> Request:
    """What a run is the answer to: what was asked for, or the same as far as the run says it.

    Raises:
        RunError: asked for again it would be another run, or none; says why.
    """
    if (quota := run.info["settings"].get("alone")) is not None:
        raise RunError(
            f"{run.path} has quota {quota!r} alone, and neither twins nor other quotas",
            hint="give the run of all quotas",
        )
    if run.request is not None:
        return run.request
    try:
        request = _told(run)
        found = request.plan(plugins).run_name
    except InputError as error:
        raise _cannot(run, error.message) from error
    if found != run.info["run"]:
        raise _cannot(run, "the code, the trace, the manifests or what was done to them is not the same now")
    return request


def _told(run: Run) -> Request:
    """The request that a run tells of."""
    info, settings = run.info, run.info["settings"]
    provenance = info["provenance"]
    return Request(
        provenance["trace"],
        plugin=info["policy"]["name"],
        cluster=provenance["cluster"] or None if not info["cluster"]["assumed"] else None,
        options=info["policy"]["options"],
        label=info["label"],
        on_preemption=settings["on_preemption"],
        grace_period=settings["grace_period_us"],
        startup=settings.get("startup_us", 0),
        until=settings["until_us"],
        scale_arrivals=settings["scale_arrivals"],
        calibration=Calibration.parse(**settings.get("calibration", {})),
        output=run.path.parent.parent,
        at_start=settings.get("at_start"),
    )


def _cannot(run: Run, why: str) -> RunError:
    command = run.info["provenance"].get("command")
    how = f"{command} --shake N" if command else "harness.compare(runs, shake=N) where it was replayed"
    return RunError(
        f"{run.path} has no twins, and cannot be replayed: {why}", hint=f"replay it with them: {how}"
    )
