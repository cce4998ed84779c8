"""Files and folders are whole or as they were; what dead processes left is removed, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.base.files import hold
from harness.base.files.hold import clear, put_back
from harness.base.files.whole import whole_file, whole_folder

WRITES = """
import sys, time
from pathlib import Path
from harness.base.files.whole import whole_folder
with whole_folder(Path(sys.argv[1])) as folder:
    (folder / "part").write_text("half")
    print(folder, flush=True)
    time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_after_a_part(place: Path, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Writes a part of a folder and is interrupted."""
    with whole_folder(place) as folder:
        (folder / "part").touch()
        meanwhile()
        raise KeyboardInterrupt


@contextmanager
def writing(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that is in the middle of writing a folder, and where it writes."""
    process = subprocess.Popen([sys.executable, "-c", WRITES, place], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def leave_behind(folder: Path, boot: str, *, age: float = 0) -> Path:
    """What a process that died leaves: its hidden folder, and a lock that nobody has."""
    lock, hidden = folder / ".harness-0a1b.lock", folder / ".harness-0a1b"
    lock.write_text(json.dumps({"place": "run", "boot": boot}))
    hidden.mkdir()
    (hidden / "part").touch()
    for path in (hidden / "part", hidden, lock):
        os.utime(path, (time.time() - age, time.time() - age))
    return hidden


def test_a_folder_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    """Until then it is hidden, then it alone is there; a second one replaces the first."""
    place = tmp_path / "above" / "runs" / "run"
    for content in ("first", "second"):
        with whole_folder(place) as folder:
            (folder / content).touch()
            assert names(place) == ["first"] if place.exists() else content == "first"
        assert names(place) == [content]
        assert names(place.parent) == ["run"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(place.stat().st_mode) == 0o777 & ~umask


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_whatever_is_in_the_way_of_a_folder_is_replaced(kind: str, tmp_path: Path) -> None:
    """A file, or a link; what a link leads to stays."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    place = tmp_path / "runs" / "run"
    place.parent.mkdir()
    if kind == "file":
        place.touch()
    else:
        place.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    with whole_folder(place) as folder:
        (folder / "new").touch()
    assert (names(place), names(place.parent)) == (["new"], ["run"])
    assert names(tmp_path / "elsewhere") == ["kept"]


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """No part of it, and no folder above that was not there; what was in its place stays."""
    for place in (tmp_path / "a" / "b" / "run", tmp_path / "run"):
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "before").touch()
        with pytest.raises(KeyboardInterrupt):
            fail_after_a_part(place)
        assert names(tmp_path) == ["run"]
        assert names(tmp_path / "run") == ["before"]


def test_folders_above_stay_for_others(tmp_path: Path) -> None:
    """Who fails does not remove what somebody else has written beside it meanwhile."""

    def meanwhile() -> None:
        with whole_folder(tmp_path / "runs" / "other"):
            pass

    with pytest.raises(KeyboardInterrupt):
        fail_after_a_part(tmp_path / "runs" / "one", meanwhile)
    assert names(tmp_path / "runs") == ["other"]


def test_what_a_dead_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """The system gives up the lock of a process that was killed; whoever gets it may remove what is left."""
    with writing(tmp_path / "run") as (process, hidden):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert names(hidden) == ["part"]
        with whole_folder(tmp_path / "other"):
            assert not hidden.exists()
    assert names(tmp_path) == ["other"]


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    """However often others clear, and however old it is."""
    with writing(tmp_path / "run") as (_, hidden):
        os.utime(hidden, (0, 0))
        os.utime(hidden.with_name(f"{hidden.name}.lock"), (0, 0))
        for _ in range(3):
            clear(tmp_path)
        assert names(hidden) == ["part"]


def test_what_another_machine_left_is_removed_after_a_week(tmp_path: Path) -> None:
    """Its locks may not be seen here, so that a free lock alone says nothing."""
    hidden = leave_behind(tmp_path, "another machine", age=6 * 86400)
    clear(tmp_path)
    assert hidden.exists()
    for path in (hidden / "part", hidden, hidden.with_name(".harness-0a1b.lock")):
        os.utime(path, (time.time() - 8 * 86400,) * 2)
    clear(tmp_path)
    assert names(tmp_path) == []


def test_hidden_files_of_others_stay(tmp_path: Path) -> None:
    """Only what has a lock file of ours is ever removed."""
    for name in (".harness-0a1b", ".other.lock", ".harness"):
        (tmp_path / name).touch()
    clear(tmp_path)
    assert names(tmp_path) == [".harness", ".harness-0a1b", ".other.lock"]


@pytest.mark.parametrize("known", [True, False])
def test_what_a_dead_process_moved_away_is_put_back(known: bool, tmp_path: Path) -> None:
    """Where names cannot be exchanged, a process may die between two renames; nothing is lost by it."""
    hidden = leave_behind(tmp_path, hold._boot())
    if not known:
        hidden.with_name(".harness-0a1b.lock").write_text("")
    hidden.with_name(".harness-0a1b.old").mkdir()
    (hidden.with_name(".harness-0a1b.old") / "before").touch()
    put_back(tmp_path / "run")
    clear(tmp_path)
    if known:
        assert names(tmp_path) == ["run"]
        assert names(tmp_path / "run") == ["before"]
    else:
        assert names(tmp_path / ".harness-0a1b.old") == ["before"]


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    """Until then what was there is read; permissions stay."""
    place = tmp_path / "page"
    for content in ("first", "second"):
        with whole_file(place) as file:
            file.write_text(content)
            assert not place.exists() or place.read_text() == "first"
        assert place.read_text() == content
        place.chmod(0o640)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    with pytest.raises(FileNotFoundError), whole_file(place) as file:
        file.write_text(Path(tmp_path / "absent").read_text())
    assert place.read_text() == "second"
    assert names(tmp_path) == ["page"]


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    """What it leads to is replaced, also where that is not there yet."""
    (tmp_path / "link").symlink_to(tmp_path / "page")
    for content in ("first", "second"):
        with whole_file(tmp_path / "link") as file:
            file.write_text(content)
        assert (tmp_path / "page").read_text() == content
    assert (tmp_path / "link").is_symlink()


def test_what_is_no_file_is_written_directly(tmp_path: Path) -> None:
    """A device or a pipe stays what it is; a folder is refused."""
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    with whole_file(tmp_path / "pipe") as file:
        file.write_text("through")
    assert reader.communicate()[0] == "through"
    with whole_file(Path("/dev/null")) as file:
        assert file == Path("/dev/null")
    with pytest.raises(IsADirectoryError), whole_file(tmp_path):
        pass
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    """Although its folder would allow it."""
    place = tmp_path / "page"
    place.write_text("before")
    place.chmod(0o444)
    with pytest.raises(PermissionError), whole_file(place):
        pass
    assert place.read_text() == "before"


def test_a_folder_that_another_process_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails removes the folders that it made, maybe just before we use them."""
    removed: list[Path] = []

    def clear(folder: Path) -> None:
        if len(removed) < 2:
            folder.rmdir()
            removed.append(folder)

    monkeypatch.setattr("harness.base.files.whole.clear", clear)
    with whole_folder(tmp_path / "a" / "run") as folder:
        (folder / "x").write_text("whole")
    assert (tmp_path / "a" / "run" / "x").read_text() == "whole"
    assert len(removed) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no working directory")
def test_a_place_that_takes_no_folders_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `/proc`, and of a working directory that was removed, the system says that it is not there."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    places = [Path("above") / "folder", Path("folder")]
    for place in [*places, *([Path("/proc/above/folder")] if Path("/proc/self").exists() else [])]:
        with pytest.raises(FileNotFoundError), whole_folder(place):
            raise AssertionError
