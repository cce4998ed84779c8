"""The store of runs. Every run in it is either complete or absent.

The folder of each run is first written under another name and then renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EINVAL
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import polars as pl

from harness.base.errors import RunError, why
from harness.base.files.hold import clear, held
from harness.base.files.whole import whole_folder
from harness.base.tables.parquet import UnwritableError
from harness.plugins import Plugins
from harness.plugins.measurement import Measurement
from harness.runs.plan import Plan
from harness.runs.replaying import add_into, measure_into, measured_by, replay_into, write_windows
from harness.runs.run import Keep, Run


class Store:
    """The runs below a folder, stored as `<root>/<trace>/<run>`.

    The folder is created when the first run is kept.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, plan: Plan) -> Path:
        """Returns the folder of the run of a plan."""
        return self.root / plan.folder

    def find(self, plan: Plan, plugins: Plugins, keep: Keep) -> Run | None:
        """Returns the stored run of a plan if the run exists and is complete.

        If the run was measured by other metrics or by other code, it is measured again. A run is ignored if
        it keeps less than required, lacks a requested metric, or comes from unknown code. The function also
        removes files that dead processes have left next to the run.

        Raises:
            RunError: the run must be measured again, but can't be written.
        """
        path = self.path(plan)
        clear(path.parent)
        if plan.unknown_code:
            return None
        try:
            run = Run.open(path, stored=True)
            run.check()
        except RunError:
            return None
        metrics = measured_by(plugins)
        if keep == "all" != run.kept:
            return None
        if run.info.get("measured_by") == metrics and None not in metrics.values():
            return run
        if run.kept != "all" or keep == "nothing":
            return None
        with _written(path) as folder:
            info = measure_into(folder, run, plugins)
        return Run(path, info, stored=True, measured_again=True)

    def record(
        self,
        plan: Plan,
        plugins: Plugins,
        keep: Keep,
        *,
        watch: Callable[[int, int], None] | None,
        command: str | None,
    ) -> Run:
        """Replay a plan and store the parts of the run that `keep` names, replacing a run of the same name.

        Raises:
            RunError: the folder can't be written.
            HarnessError: the error that stopped the replay. In this case, no file is left behind.
        """
        if keep == "nothing":
            with aside() as folder:
                info, metrics = replay_into(folder, plan, plugins, watch, command, keep)
            return Run(None, info, metrics=metrics)
        path = self.path(plan)
        with _written(path) as folder:
            info, _ = replay_into(folder, plan, plugins, watch, command, keep)
        return Run(path, info)


def added(
    run: Run,
    rows: Sequence[Measurement],
    about: Mapping[str, Any],
    further: Mapping[str, Mapping[str, pl.Series]] | None = None,
) -> Run:
    """Add metrics to a run and store it. They replace metrics with the same names.

    `about` contains additional entries for `run.json`. `further` contains additional tables by name, which
    must not have time columns.

    Raises:
        RunError: a table of the run is damaged, or the run can't be written.
    """
    with _written(run.path) as folder:
        info = add_into(folder, run, rows, about, further or {})
    return _again(run, info)


def with_windows(run: Run, windows: Mapping[str, Sequence[Measurement]], keep: Keep) -> Run:
    """Add measurements over other windows to a run and store it.

    The run must have all its tables. `windows` maps the name of a window to the measurements over it.

    Raises:
        RunError: a table of the run is damaged, or the run can't be written.
    """
    with _written(run.path) as folder:
        info = write_windows(folder, run, windows, keep)
    return _again(run, info)


def _again(run: Run, info: Mapping[str, Any]) -> Run:
    found = Run(run.path, info, stored=run.stored, measured_again=run.measured_again)
    found.request = run.request
    return found


@contextmanager
def aside() -> Iterator[Path]:
    """Make a temporary folder for a run that is not kept, and remove the folders of dead processes.

    Raises:
        RunError: the folder can't be written.
    """
    place = Path(gettempdir()) / "run"
    with _writing(place.parent, "set TMPDIR to another folder"):
        clear(place.parent)
        with held(place) as hold:
            hold.path.mkdir()
            yield hold.path


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """Make a new folder for a run, which replaces the old folder if the block ends without an error."""
    with _writing(path, "choose another folder with -o"):
        _nameable(path)
        with whole_folder(path) as folder:
            yield folder


@contextmanager
def _writing(path: Path, hint: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnwritableError) as error:
        raise RunError(f"{path} cannot be written: {why(error)}", hint=hint) from error


def _nameable(path: Path) -> None:
    if "\0" in str(path) or any("\ud800" <= char <= "\udfff" for char in str(path)):
        raise OSError(EINVAL, "no folder can have this name")
