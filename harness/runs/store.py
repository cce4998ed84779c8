"""Where runs are kept: each a folder that is written aside and renamed, so that it is whole or absent."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from pathlib import Path

from harness.errors import RunError
from harness.plugins import Plugins
from harness.recording.parquet import UnwritableError
from harness.runs.plan import Plan
from harness.runs.replaying import measured_by, replay_into
from harness.runs.run import Run


class Store:
    """Runs under one folder, as `<root>/<trace>/<run>`.

    Args:
        root: the folder; made when the first run is kept.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, plan: Plan) -> Path:
        """Where a plan's run is kept."""
        return self.root / plan.trace_name / plan.run_name

    def find(self, plan: Plan, plugins: Plugins) -> Run | None:
        """The run of a plan if it is there, whole, and measured by the metrics that there are now."""
        try:
            run = Run.open(self.path(plan), stored=True)
        except RunError:
            return None
        return run if run.info.get("measured_by") == measured_by(plugins) else None

    def record(
        self,
        plan: Plan,
        plugins: Plugins,
        *,
        watch: Callable[[int, int], None] | None = None,
        command: str | None = None,
    ) -> Run:
        """Replay a plan and keep the run; a run of the same name is replaced.

        Raises:
            RunError: the folder cannot be written.
            HarnessError: whatever stopped the replay; nothing is left behind.
        """
        path = self.path(plan)
        try:
            with _aside(path) as folder:
                info = replay_into(folder, plan, plugins, watch, command)
                _replace(path, folder)
        except (OSError, UnwritableError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise RunError(
                f"{path} cannot be written: {reason or error}", hint="choose another folder with -o"
            ) from error
        return Run(path, info)


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """A new folder beside a path; whatever is left there in the end is thrown away."""
    try:
        str(path).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except ValueError as error:  # a null character, or bytes that are no UTF-8
        raise OSError(EINVAL, "no folder can have this name") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replace(path: Path, whole: Path) -> None:
    """Put a whole run into its place; what was there is thrown away."""
    whole.chmod(0o755)
    with _aside(path) as old:
        with suppress(FileNotFoundError):
            path.rename(old / path.name)
        try:
            whole.rename(path)
        except OSError:
            if not (path / "run.json").is_file():  # else another process was quicker with the same run
                raise
