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

_KEPT = "in a sweep, most runs have only metrics; the plugin must look at run.kept before it reads tables"


def execute(
    plan: Plan,
    plugins: Plugins,
    *,
    output: Path,
    force: bool,
    keep: Keep,
    watch: Callable[[int, int], None] | None,
    command: str | None,
) -> Run:
    """Carry out a plan, or return the run if it is already stored.

    For the arguments, see `Request` and `Request.run`. The hooks of the plugins are called at the start and
    the end of the replay. A stored run that has at least the parts in `keep` is reused.

    Raises:
        RunError: the run folder can't be written.
        PluginError: a plugin failed in one of its hooks. If it failed after the replay, the run is stored.
    """
    for code in plan.code:
        if code.changed:
            warn(f"{code.unknown}, but the replay uses the earlier code: import it again", stacklevel=4)
    store = Store(output)
    if not force and (found := store.find(plan, plugins, keep)) is not None:
        return found
    before = _decided_before(store.path(plan)) if force and keep == "all" and not plan.unknown_code else None
    _call("harness_replay_started", plugins, plan=plan)
    run = store.record(plan, plugins, keep, watch=watch, command=command)
    if before not in (None, _decided(run)):
        warn(
            f"{run.label}: this replay decided differently from the stored run with the same inputs, and has "
            "replaced that run; a policy must make the same decisions in each replay",
            stacklevel=4,
        )
    _call("harness_replay_finished", plugins, run=run)
    return run


def _decided_before(path: Path) -> object:
    """Returns the decisions of the stored run that a replay is going to replace, or None."""
    try:
        return _decided(Run.open(path))
    except RunError:
        return None


def _decided(run: Run) -> object:
    """Returns the checksum of a run's decisions, or None if the versions that wrote the table may differ."""
    same = run.info["provenance"]["versions"] == versions()
    return run.info["tables"].get("decisions") if same else None


def _call(hook: str, plugins: Plugins, **arguments: Plan | Run) -> None:
    try:
        getattr(plugins.hooks, hook)(**arguments)
    except BaseException as error:
        lacks = isinstance(error, RunError)  # The run has no tables, and the hook did not ask `run.kept`.
        if not (lacks or is_of_plugin(error)):
            raise
        what = str(error) if lacks else told(error)
        raise PluginError(
            f"{_whose(hook, plugins, error)} failed in its hook {hook}: {what}",
            hint=_KEPT if lacks else "--debug shows where",
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
