"""Carries out a plan, or returns the stored run if the same plan was carried out before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from warnings import warn

from harness.base.build import versions
from harness.base.errors import PluginError, RunError, is_of_plugin, told
from harness.plugins import Plugins
from harness.runs.plan import Plan
from harness.runs.run import Keep, Run
from harness.runs.store import Store


def execute(
    plan: Plan,
    plugins: Plugins,
    *,
    output: Path,
    force: bool = False,
    keep: Keep = "all",
    watch: Callable[[int, int], None] | None = None,
    command: str | None = None,
) -> Run:
    """Carry out a plan, or return the run if it is already stored.

    Args:
        plan: what to replay.
        plugins: the plugins, which provide metrics. Their hooks are called at the start and end of the
            replay.
        output: the folder that contains runs.
        force: whether to replay even if the run is stored.
        keep: which parts of the run to store. A stored run that has at least these parts is reused.
        watch: a function that is called from time to time with the simulated time and the number of jobs that
            have arrived.
        command: the command line that reproduces the run, for its provenance.

    Raises:
        RunError: the run folder can't be written.
        PluginError: a plugin failed in one of its hooks. If it failed after the replay, the run is stored.
    """
    for code in plan.code:
        if code.changed:
            warn(f"{code.unknown}, but the replay uses the earlier code: import it again", stacklevel=4)
    if not force and (found := stored(plan, plugins, output=output, keep=keep)) is not None:
        return found
    before = _decided_before(plan, output) if force and keep == "all" and not plan.unknown_code else None
    _call("harness_replay_started", plugins, plan=plan)
    run = Store(output).record(plan, plugins, keep, watch=watch, command=command)
    if before not in (None, _decided(run)):
        warn(
            f"{run.label}: this replay decided differently from the stored run with the same inputs, and has "
            "replaced that run; a policy must make the same decisions in each replay",
            stacklevel=4,
        )
    _call("harness_replay_finished", plugins, run=run)
    return run


def _decided_before(plan: Plan, output: Path) -> object:
    """Returns the decisions of the stored run that a replay is going to replace, or None."""
    try:
        return _decided(Run.open(Store(output).path(plan)))
    except RunError:
        return None


def _decided(run: Run) -> object:
    """Returns the checksum of a run's decisions, or None if the versions that wrote the table may differ."""
    same = run.info["provenance"]["versions"] == versions()
    return run.info["tables"].get("decisions") if same else None


def stored(plan: Plan, plugins: Plugins, *, output: Path, keep: Keep = "all") -> Run | None:
    """Returns the stored run of a plan, or None. For the arguments, see `execute`.

    Raises:
        RunError: the run must be measured again, but can't be written.
    """
    return Store(output).find(plan, plugins, keep)


def _call(hook: str, plugins: Plugins, **arguments: Plan | Run) -> None:
    try:
        getattr(plugins.hooks, hook)(**arguments)
    except BaseException as error:
        if not is_of_plugin(error):
            raise
        raise PluginError(
            f"{_whose(hook, plugins, error)} failed in its hook {hook}: {told(error)}",
            hint="--debug shows where",
        ) from error


def _whose(hook: str, plugins: Plugins, error: BaseException) -> str:
    """Names the plugin whose hook raised an error, or all plugins with the hook if that plugin is unknown."""
    functions = [
        (getattr(each.function, "__code__", None), each.plugin_name)
        for each in getattr(plugins.hooks, hook).get_hookimpls()
    ]
    names, trace = [name for _, name in functions], error.__traceback__
    while trace is not None:
        theirs = [name for code, name in functions if code is trace.tb_frame.f_code]
        if theirs:
            names = theirs
            break
        trace = trace.tb_next
    return f"plugin {names[0]!r}" if len(names) == 1 else f"one of the plugins {', '.join(map(repr, names))}"
