"""Every error that `harness` raises on purpose.

HarnessError
├── InputError            the user's input is wrong; the command line exits with 2
│   ├── TraceError
│   ├── ClusterError
│   ├── SpecError
│   ├── OptionError
│   ├── PluginError
│   │   └── RegistrationError   a plugin makes an invalid registration; it counts as not loaded
│   └── RunError          a run folder is missing, damaged or not comparable
├── PolicyError           a policy raised an error
│   └── DecisionError     a policy made an impossible decision; the referee refuses it
├── ReplayError           one or more of several replays failed, or the process of a replay died
├── CheckError            a check that the user asked for does not hold; exit 1
└── StoppedError          a replay made no progress and was stopped; exit 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harness.base.values import Value, fixed

if TYPE_CHECKING:
    from harness.runs.run import Run

FAULTS_SHOWN = 20

IN_UTF8 = "iconv -f WINDOWS-1252 -t UTF-8 IN > OUT converts text of Western European programs"
"""The hint for text that is neither UTF-8 nor UTF-16."""


class HarnessError(Exception):
    """The base class of all errors of `harness`.

    The message says what happened and where, and `hint` says what the user can do.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"Hint: {hint}")  # so that the traceback of an uncaught error shows the hint

    def within(self, where: str) -> None:
        """Insert the location of the error before its message, without changing its type, hint or faults."""
        self.message = f"{where}: {text_of(self)}"
        self.args = (self.message,)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make errors picklable, including errors with arguments of their own."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[HarnessError], args: tuple[Any, ...]) -> HarnessError:
    error = kind.__new__(kind)
    error.args = args
    return error


class InputError(HarnessError):
    """An input from the user can't be used."""


class OptionError(InputError):
    """An option is unknown, of the wrong type or out of its range."""


class PluginError(InputError):
    """A plugin can't be loaded, is unknown, or conflicts with another plugin."""


class RegistrationError(PluginError):
    """A plugin registers something under an invalid name or with invalid values."""


class RunError(InputError):
    """A run folder is missing or damaged, or can't be compared with another run."""


class PolicyError(HarnessError):
    """A policy raised an error of its own during a replay."""


class DecisionError(PolicyError):
    """A policy made a decision that the state of the cluster doesn't allow."""


class ReplayError(HarnessError):
    """Some of several replays failed, or the process of a replay died.

    Attributes:
        runs: the runs in the order of their requests, with None for failed replays.
        errors: maps the index of a request to its error.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        runs: Sequence[Run | None] = (),
        errors: Mapping[int, BaseException] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.runs = list(runs)
        self.errors = dict(errors or {})


class CheckError(HarnessError):
    """A check that the user requested failed, such as a conformance test or an expectation."""

    exit_code = 1


class StoppedError(HarnessError):
    """A replay was stopped early because it made no progress. The run up to this time is kept."""

    exit_code = 1


INTERRUPTS: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit)
"""Exceptions that stop a program although no code failed."""

_NOT_THEIRS = (HarnessError, MemoryError, *INTERRUPTS)
_PANIC = "PanicException"
"""The class name of panics, with which Rust libraries report defects or a lack of memory."""


def is_of_plugin(error: BaseException) -> bool:
    """Returns True if an error in a plugin's code, or its call of `sys.exit`, is the plugin's own fault.

    The plugin isn't at fault if the error is a `HarnessError`, if memory is exhausted, if the user interrupts
    the program, or if a Rust library panics.
    """
    return not isinstance(error, _NOT_THEIRS) and type(error).__name__ != _PANIC


def told(error: BaseException) -> str:
    """Returns the type of an error with its text, such as `ValueError: no such queue`."""
    return f"{type(error).__name__}: {text_of(error)}"


def why(error: BaseException, otherwise: str = "") -> str:
    """Returns the system's reason for a failed call, or else `otherwise`, or else the text of the error."""
    return getattr(error, "strerror", None) or otherwise or str(error)


def text_of(error: BaseException) -> str:
    """Returns the text of an error that a plugin raised, even if converting the error to text fails."""
    try:
        return str(error)
    except Exception as failure:
        return f"(its message cannot be shown: {type(failure).__name__})"


@contextmanager
def blamed_on(
    what: str, *, kind: type[HarnessError] = PluginError, hint: str = "--debug shows where"
) -> Iterator[None]:
    """Convert an error of a plugin in this block into an error that names the plugin.

    `is_of_plugin` says which errors are converted.

    `what` is the beginning of the message, which contains the plugin and the failed action. `kind` is the
    class of the new error.

    Raises:
        HarnessError: the code in the block failed. The new error has the class `kind`.
    """
    try:
        yield
    except BaseException as error:
        if not is_of_plugin(error):
            raise
        raise kind(f"{what}: {told(error)}", hint=hint) from error


@fixed()
class Fault(Value):
    """One fault of an input, with its location (`where`) and its description (`what`)."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class FaultyInputError(InputError):
    """An input has one or more faults. The error lists all of them.

    Args:
        source: the input, which is usually a path.
        faults: all faults, in the order of the input. Readers that read the same value may report it several
            times; the error names each fault once.
        hint: what to do about it.
    """

    def __init__(
        self, source: str, faults: Sequence[Fault] | Iterable[Fault], *, hint: str | None = None
    ) -> None:
        self.source = source
        self.faults = tuple(dict.fromkeys(faults))
        super().__init__(_listed(source, self.faults), hint=hint)


class TraceError(FaultyInputError):
    """A trace can't be read or violates the schema."""


class SpecError(FaultyInputError):
    """A specification can't be read or is faulty, for example the specification of a synthetic trace."""


class ClusterError(FaultyInputError):
    """Manifests can't be read or contradict each other."""


def _listed(source: str, faults: tuple[Fault, ...]) -> str:
    if len(faults) == 1:
        return f"{source}: {faults[0]}"
    lines = [f"{source}: {len(faults):,} faults"]
    lines += [f"  {fault}" for fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"  … and {len(faults) - FAULTS_SHOWN:,} more")
    return "\n".join(lines)
