"""Finds and reads manifest files, which a user gives as files, folders or standard input.

Files can be gzipped.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from harness.base.errors import IN_UTF8, ClusterError, Fault, why
from harness.base.files.packed import PackedError, unpacked_bytes
from harness.base.files.standard_input import STANDARD_INPUT, standard_input

_ENDINGS = (".json", ".yaml", ".yml")
_PACKED = ".gz"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_BETWEEN = ","
_HINT = "give files or folders of Kubernetes manifests, separated by commas, or - for stdin"


def sources(path: Path) -> list[Path]:
    """Returns the files and folders in a comma-separated list of paths.

    If the whole text is the path of an existing file or folder, it is a single path, even if it contains
    commas.

    Raises:
        ClusterError: a part before or after a comma is empty.
    """
    text = str(path)
    if _BETWEEN not in text or path.exists():
        return [path]
    parts = [part.strip() for part in text.split(_BETWEEN)]
    if not all(parts):
        raise ClusterError(text, [Fault("", "has an empty part before or after a comma")], hint=_HINT)
    return [Path(part) for part in parts]


def files_of(path: Path) -> list[tuple[str, Path]]:
    """Returns the files to read, with their names in messages. The name of a single file is "".

    Raises:
        ClusterError: a folder must first be built by kustomize, or contains no manifest file.
    """
    several = sources(path)
    if len(several) == 1:
        return _in_folder(path) if path.is_dir() else [("", path)]
    found: list[tuple[str, Path]] = []
    for each in several:
        if each.is_dir():
            found += [(f"{each.as_posix()}/{name}", file) for name, file in _in_folder(each)]
        else:
            found.append((str(each), each))
    return found


def _in_folder(path: Path) -> list[tuple[str, Path]]:
    """Returns the files of a folder and its subfolders, sorted by path. Hidden files are left out."""
    found: list[tuple[str, Path]] = []

    def unreadable(error: OSError) -> None:
        raise _unreadable(path, error) from error

    for folder, folders, names in os.walk(path, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder, name)
            if name in _KUSTOMIZATIONS:
                raise ClusterError(
                    str(path),
                    [Fault(file.relative_to(path).as_posix(), "is an input of kustomize, not a manifest")],
                    hint=f"run kubectl kustomize {shlex.quote(str(file.parent))} > FILE and give that file",
                )
            if name.removesuffix(_PACKED).endswith(_ENDINGS) and not name.startswith("."):
                found.append((file.relative_to(path).as_posix(), file))
    if not found:
        raise ClusterError(str(path), [Fault("", f"is a folder without {', '.join(_ENDINGS)} files")])
    return sorted(found)


def text_of(path: Path, hint: str = _HINT) -> str:
    """Returns the text of a file. A gzipped file is decompressed.

    `hint` says which file to give if this one can't be read.

    Raises:
        ClusterError: the file can't be read, is an incomplete gzip file, or is not text.
    """
    try:
        data = standard_input() if path == STANDARD_INPUT else path.read_bytes()
        data = unpacked_bytes(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ClusterError(str(path), [Fault("", not_utf8(error))], hint=IN_UTF8) from error
    except PackedError as error:
        raise ClusterError(str(path), [Fault("", str(error))], hint=error.hint) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error, hint) from error


def not_utf8(error: UnicodeDecodeError) -> str:
    """Returns what is wrong with the first byte of a text that is not UTF-8, with its line."""
    data, at = error.object, error.start
    line = data.count(b"\n", 0, at) + 1
    return f"is not UTF-8 text: byte {at} (line {line:,}) is {data[at]:#04x}"


def _unreadable(path: Path, error: OSError | ValueError, hint: str = _HINT) -> ClusterError:
    where = str(error.filename) if isinstance(error, OSError) and error.filename else str(path)
    return ClusterError(where, [Fault("", f"cannot be read: {why(error)}")], hint=hint)
