"""Defines the options of plugins, each with a name, a type, a default and a description.

Policies and readers declare options with `Option`. The command line, the API and `run.json` all use this
declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from harness.base.errors import InputError, OptionError, text_of
from harness.base.names import is_word
from harness.base.units import exact_duration, exact_number, parse_duration
from harness.base.values import Value, fixed

_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}
_LISTED = 12
_MOST_DECIMALS = 30


def boolean(text: str) -> bool:
    """Parse `true` or `false` in common spellings."""
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise InputError(f"{text!r} is neither true nor false")


@fixed()
class Option(Value):
    """One option of a plugin.

    Args:
        name: the text before the `=`.
        default: the value if the user doesn't set the option. It is not converted, so the default of
            `parse_duration` is a number of microseconds.
        help: a description of the option's effect in one line.
        type: a function that converts text from the user, such as `str`, `int`, `boolean` or
            `parse_duration`.
        choices: the allowed values, or an empty tuple if all values are allowed.

    Raises:
        OptionError: users can't write the option after `--set`, `run.json` can't store its default, or the
            default is a text that `type` would convert.
    """

    name: str
    default: Any
    help: str
    type: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (fault := _fault(self.name, self.help, self.type, self.choices)) is not None:
            raise OptionError(f"option {self.name!r}: {fault}")
        object.__setattr__(self, "choices", tuple(self.choices))
        self._keepable(self.default, "its default")
        self._converted()

    def parse(self, value: Any) -> Any:
        """Parse text, or check a value of another type, and return the value of the option.

        Raises:
            OptionError: the value is invalid for this option.
        """
        given = value
        value = self._parsed(value) if isinstance(value, str) else self._typed(value)
        if isinstance(value, float) and not isfinite(value):
            raise OptionError(f"option {self.name}: {given!r} is not a finite number")
        if self.choices and value is not None and value not in self.choices:
            raise OptionError(f"option {self.name}: {value!r} is not one of {', '.join(self.choices)}")
        self._keepable(value, "the value")
        return value

    def _converted(self) -> None:
        """Check that a policy gets a value of the same type, whether or not the user sets the option."""
        if not isinstance(self.default, str) or self.type is str:
            return
        try:
            value = self.type(self.default)
        except Exception:  # Some defaults, such as an empty text, are not values that a user can set.
            return
        if not isinstance(value, str):
            raise OptionError(
                f"option {self.name}: its default {self.default!r} is text, which harness does not convert",
                hint=f"write the default as {value!r}",
            )

    def _keepable(self, value: object, what: str) -> None:
        if not _in_json(value):
            shown = repr(value) if isinstance(value, float) else f"of type {type(value).__name__}"
            raise OptionError(
                f"option {self.name}: run.json cannot store {what}, {shown}",
                hint="use strings, finite numbers, true, false and None, or lists and dicts of these",
            )

    def _parsed(self, text: str) -> Any:
        try:
            value = self.type(text)
        except InputError as error:
            raise OptionError(f"option {self.name}: {error}", hint=error.hint) from error
        except Exception as error:  # a plugin's own parser may raise any error for an invalid text
            kind = "a whole number" if self.type is int else "a number" if self.type is float else ""
            why = f"is not {kind}" if kind else f"is not understood: {text_of(error)}"
            raise OptionError(f"option {self.name}: {text!r} {why}") from error
        return value

    def _typed(self, value: Any) -> Any:
        """Check that a value has the type of the default, or else `type`, and return the value."""
        if value is None and self.default is None:
            return None
        wanted = type(self.default) if self.default is not None else self.type
        if wanted is float and type(value) is int:
            return float(value)
        if isinstance(wanted, type) and type(value) is not wanted:
            raise OptionError(
                f"option {self.name}: {value!r} is of type {type(value).__name__}, not {wanted.__name__}"
            )
        return value


def _fault(name: object, help: object, type: object, choices: object) -> str | None:
    """Returns the fault in an option's fields, which can have any type, or None if they are valid."""
    if not is_word(name):
        return "its name may contain only letters, digits, '-', '_', '.', '+', and not begin with '-' or '.'"
    if not isinstance(help, str):
        return "its help must be a string"
    if not callable(type):
        return "its type must be a function that converts a string to a value, such as int"
    if not isinstance(choices, (tuple, list)) or not all(isinstance(each, str) for each in choices):
        return "its choices must be a tuple of strings"
    return None


def _in_json(value: object) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(map(_in_json, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _in_json(each) for name, each in value.items())
    return value is None or isinstance(value, (str, int))


def declared_options(options: object) -> tuple[Option, ...]:
    """Returns declared options as a tuple.

    Raises:
        OptionError: `options` is not a tuple or list of `Option`, or two options have the same name.
    """
    if isinstance(options, Option):
        raise OptionError(
            "options must be a tuple of Option, but is a single Option",
            hint="a tuple with one element needs a comma: (option,)",
        )
    if isinstance(options, (str, bytes, Mapping)) or not isinstance(options, Iterable):
        raise OptionError(f"options must be a tuple of Option, but is of type {type(options).__name__}")
    found = tuple(options)
    for each in found:
        if not isinstance(each, Option):
            raise OptionError(f"options must be a tuple of Option, but {each!r} in it is not an Option")
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"two options have the name {name!r}")
    return found


def policy_options(options: object) -> tuple[Option, ...]:
    """Returns the declared options of a policy as a tuple.

    Raises:
        OptionError: see `declared_options`. The error also occurs if an option has the name `seed`, which a
            sweep sets for each twin.
    """
    found = declared_options(options)
    if any(each.name == "seed" for each in found):
        raise OptionError(
            "an option cannot have the name 'seed', because sweeps use it for the number of each twin",
            hint="choose a more specific name, such as deviceSeed",
        )
    return found


def resolve(declared: Iterable[Option], given: Mapping[str, Any], *, owner: str) -> dict[str, Any]:
    """Returns all declared options with their given or default values, sorted by name.

    Raises:
        OptionError: a given name is not declared, or a value is invalid.
    """
    options = {option.name: option for option in declared}
    for name in given:
        if name not in options:
            raise OptionError(f"{owner} has no option {name!r}", hint=did_you_mean(str(name), options))
    try:
        return {
            name: option.parse(given[name]) if name in given else option.default
            for name, option in sorted(options.items())
        }
    except OptionError as error:
        raise OptionError(f"{owner}, {error.message}", hint=error.hint) from error


def refuse_set(owner: str, meaningless: Iterable[Option], options: Mapping[str, Any], because: str) -> None:
    """Reject options that have no effect on the given cluster, unless they have their defaults.

    Raises:
        OptionError: one of the `meaningless` options does not have its default.
    """
    for option in meaningless:
        if options[option.name] != option.default:
            raise OptionError(f"{owner}: option {option.name} has no effect here: {because}")


def factor(refusal: str, value: str | float | Fraction, *, hint: str) -> Fraction:
    """Converts a scale factor, such as `2`, `0.5`, `1/8` or a computed number, to an exact fraction.

    `refusal` is the beginning of the message for an invalid factor, such as `arrivals cannot be scaled by`.
    `hint` has examples of factors and their effect.

    Raises:
        OptionError: the value is not a number from a millionth to a million, or has more digits than a float
            can have.
    """
    try:
        found = value if isinstance(value, Fraction) else exact_number(str(value))
    except ValueError:
        found = Fraction(0)
    if not Fraction(1, 10**6) <= found <= 10**6:
        raise OptionError(f"{refusal} {value!r}", hint=f"{hint}; from 0.000001 to 1000000")
    if found.denominator > 10**_MOST_DECIMALS:
        raise OptionError(f"{refusal} {value!r}: it has more than {_MOST_DECIMALS} decimals", hint=hint)
    return found


def factor_text(stored: str) -> str:
    """Returns a stored factor in the usual form, such as `0.57` for the fraction `57/100`."""
    try:
        number = exact_number(stored)
    except ValueError:  # the run was edited by hand
        return stored
    decimal = f"{Decimal(repr(float(number))):f}"
    return decimal.removesuffix(".0") if Fraction(decimal) == number else stored


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a hint with the known name that was probably meant, or else a list of known names."""
    known = sorted(known)
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close is not None else there_is(known)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the most similar known name, ignoring case, or None if no name is similar."""
    import difflib  # needed only for hints

    plain: dict[str, str] = {}
    for each in known:
        plain.setdefault(each.casefold(), each)
    close = difflib.get_close_matches(name.casefold(), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def there_is(known: Iterable[str]) -> str:
    """Returns a text such as `there is: a, b, c`. If there are many names, it lists only the first ones."""
    names = list(known)
    if not names:
        return "there is none"
    more = f", … and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"there is: {', '.join(names[:_LISTED])}{more}"


def option_text(value: Any, *, duration: bool = False, nothing: str = "") -> str:
    """Returns an option's value as users write it after `--set`.

    `value` is the value that the policy gets, `duration` says whether it is a duration in microseconds, and
    `nothing` is the text for None.
    """
    if value is None or value == "":
        return nothing
    if isinstance(value, bool):
        return str(value).lower()
    return exact_duration(value) if duration and isinstance(value, int) else str(value)


def durations(options: Iterable[Option]) -> list[str]:
    """Returns the names of options that are durations and have values in microseconds."""
    return [option.name for option in options if option.type is parse_duration]
