"""Presents errors to users as a message on stderr and an exit code, with a traceback only on request."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import NoReturn

import click

from harness.base.errors import HarnessError, why
from harness.cli.screen import printable_lines, tell

USAGE = 2
"""The exit code for wrong usage, for bad input, and if the machine doesn't have enough resources."""

DEFECT = 70
"""The exit code for a defect in `harness` itself, which is EX_SOFTWARE of BSD."""

_DEBUG = "--debug shows where"
_SIGNALLED = 128
"""After a signal, the exit code is this number plus the signal's number, for example 130 after ctrl-C."""


class Ended(KeyboardInterrupt):
    """Raised when a signal requests the end of the process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def open_what_is_closed() -> bool:
    """Replace standard streams that the caller closed (`harness ... 2>&-`) with `os.devnull`.

    Python sets such a stream to None, and the first file that is opened would get the number of the stream.
    The result is True if stdout was closed, which means that results would be lost.
    """
    mute = sys.stdout is None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
    return mute


def end_like_ctrl_c() -> None:
    """Make SIGTERM and SIGHUP stop a command as ctrl-C does, so that no file is left incomplete.

    An ignored signal (`nohup`) stays ignored.
    """
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _: object) -> NoReturn:
    raise Ended(number)


@contextmanager
def warnings_in_words() -> Iterator[None]:
    """Print warnings during a command as lines on stderr, without their location in the code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        tell(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def ended(error: BaseException, *, debug: bool) -> int:
    """Prints what went wrong, and returns the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    broken = isinstance(error, OSError) and _detach_broken_streams()
    if isinstance(error, BrokenPipeError):
        return 0  # The reader closed our output (`| head`), which is not an error.
    if isinstance(error, KeyboardInterrupt | click.Abort):
        if sys.stderr.isatty():
            click.echo(err=True)  # End the line in which the terminal shows ^C.
        if debug:
            _say("".join(traceback.format_exception(error)).rstrip("\n"))
        # A replay notes its policy and time, which help to find an endless loop of the policy.
        notes = getattr(error, "__notes__", [])
        complain("interrupted; no file is incomplete", "; ".join([*notes, _DEBUG]) if notes else None)
        return _SIGNALLED + (error.number if isinstance(error, Ended) else signal.SIGINT)
    if debug:
        _say("".join(traceback.format_exception(error)).rstrip("\n"))
    if isinstance(error, HarnessError):
        complain(error.message, error.hint)
        return error.exit_code
    if isinstance(error, click.ClickException):
        shown = StringIO()
        error.show(file=shown)
        # Click uses tabs when it lists choices.
        _say(shown.getvalue().rstrip("\n").expandtabs(2) + _misplaced(error))
        return USAGE
    if isinstance(error, OSError):
        # Errors of streams have no file name. Errors of files have one, unless we raised them ourselves.
        named = None if broken else error.filename
        complain(f"{named or 'the output cannot be written'}: {why(error)}")
        return USAGE
    if isinstance(error, MemoryError) or is_shortage(error):
        complain("there is not enough memory", "no file is incomplete; run fewer replays at the same time")
        return USAGE
    complain(f"unexpected {_in_a_line(error)}", "this is a bug in harness" + ("" if debug else f"; {_DEBUG}"))
    return DEFECT


def _in_a_line(error: BaseException) -> str:
    """Returns the text of a defect with its one-line notes. Longer notes are tracebacks."""
    told = traceback.TracebackException(type(error), error, None)
    notes, told.__notes__ = told.__notes__ or [], None  # Otherwise, the last line would be a note.
    about = "; ".join(note for note in notes if "\n" not in note)
    text = list(told.format_exception_only())[-1].strip()
    return f"{text} ({about})" if about else text


def is_shortage(error: BaseException) -> bool:
    """Returns True if memory ran out although Python raised no `MemoryError`.

    If polars gets no memory or no thread from the system, it panics. A new thread needs memory, too. If the
    memory of a compiled module can't be mapped, the module returns without an exception, and Python then
    raises `SystemError`.
    """
    if isinstance(error, SystemError):
        return "error return without exception set" in str(error)
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(error, polars.exceptions.PanicException):
        return False
    return any(os.strerror(number) in str(error) for number in (errno.EAGAIN, errno.ENOMEM))


def complain(message: str, hint: str | None = None) -> None:
    """Print an error and a hint about what to do."""
    _say(f"Error: {message}")
    if hint:
        _say(f"Hint: {hint}")


def _say(text: str) -> None:
    click.echo(printable_lines(text), err=True)


def _misplaced(error: click.ClickException) -> str:
    if not isinstance(error, click.NoSuchOption) or error.ctx is None or error.ctx.parent is None:
        return ""
    known = [name for option in error.ctx.find_root().command.params for name in option.opts]
    if error.option_name not in known:
        return ""
    return f"\nHint: {error.option_name} goes before the command: harness {error.option_name} ..."


def _detach_broken_streams() -> bool:
    """Detaches streams that can't be written, so that the interpreter exits cleanly; True for stdout."""
    broken = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            broken |= stream is sys.stdout
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    return broken
