"""The language of mappings: the source of each column of a trace, and conditions for the rows of a table.

    SOURCE    = VALUE [: UNIT]  |  'constant'
    VALUE     = TERM [/ TERM]
    TERM      = column | col("a name") | number | TERM + TERM | TERM - TERM | FUNCTION(...)
    CONDITION = TERM op TERM | TERM is None | TERM in ('a', 'b') | TERM | and, or, not

Python's own parser parses the text, and the result is converted to the classes below. If this is impossible,
the fault names the place. Therefore, a mapping cannot read files, use a clock, or call code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn, TypeAlias

FUNCTIONS = {
    "tres": (2, None),
    "size": (1, 1),
    "comma": (1, 1),
    "thousands": (1, 1),
    "cores": (1, 1),
    "span": (1, 1),
    "unless": (2, None),
    "below": (2, 2),
    "first": (1, None),
    "most": (1, None),
    "count": (1, 1),
    "row": (0, 0),
}
"""The minimum and the maximum number of arguments of each function. None means that there is no maximum."""

_LONGEST = 10_000
_DEEPEST = 100
_HAS = "the language has columns, col('a name'), numbers, + and -, one /, and the functions " + ", ".join(
    f"{name}()" for name in FUNCTIONS
)
_OPERATORS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class LanguageError(ValueError):
    """A text does not follow the mapping language. The message has the place and the valid forms."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table. Its value in each row is the value of the term."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a number, text, true, or false."""

    value: Decimal | str | bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum or the difference of two terms."""

    left: Term
    right: Term
    sign: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the mapping language."""

    name: str
    arguments: tuple[Term, ...]


Term: TypeAlias = Column | Literal | Sum | Call


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a column of a trace.

    Attributes:
        term: the term of the source. In a division, it is the numerator.
        by: the divisor, or None if there is no division.
        unit: the unit of the term's number or text, or "" if no unit is given.
        constant: the text of all rows if the source is a constant, or else None.
    """

    text: str
    term: Term
    by: Term | None = None
    unit: str = ""
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two terms. `operator` is one of Python's six comparison operators."""

    left: Term
    operator: str
    right: Term


@dataclass(frozen=True, slots=True)
class IsNull:
    """The condition that a term has no value."""

    term: Term


@dataclass(frozen=True, slots=True)
class IsIn:
    """The condition that a term is one of several constants."""

    term: Term
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsTrue:
    """The condition that a term is true."""

    term: Term


@dataclass(frozen=True, slots=True)
class Not:
    """The condition that another condition does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class Together:
    """The condition that several conditions all hold (`every`), or that at least one of them holds."""

    conditions: tuple[Condition, ...]
    every: bool


Condition: TypeAlias = Compared | IsNull | IsIn | IsTrue | Not | Together


def parse_source(text: str) -> Source:
    """Parses the source of a column of a trace.

    Raises:
        LanguageError: the text does not follow the language.
    """
    text = text.strip()
    constant = _quoted(text)
    if constant is not None:
        return Source(text, Literal(constant), constant=constant)
    value, unit = _split_unit(text)
    node = _parsed(value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return Source(text, _term(node.left, value), _term(node.right, value), unit)
    return Source(text, _term(node, value), unit=unit)


def parse_term(text: str) -> Term:
    """Parses a single term, such as the column that `latest` names.

    Raises:
        LanguageError: the text does not follow the language.
    """
    return _term(_parsed(text.strip()), text.strip())


def parse_condition(text: str) -> Condition:
    """Parses a condition that selects rows.

    Raises:
        LanguageError: the text does not follow the language.
    """
    return _condition(_parsed(text.strip()), text.strip())


def numbered(source: Source) -> Source:
    """Returns a source in which integers outside of functions are columns, for tables without a header."""
    if source.constant is not None:
        return source
    return replace(
        source, term=_numbered(source.term), by=None if source.by is None else _numbered(source.by)
    )


def _numbered(term: Term) -> Term:
    match term:
        case Literal(Decimal() as value):
            return Column(str(value))
        case Sum(left, right, sign):
            return Sum(_numbered(left), _numbered(right), sign)
    return term


def columns_of(each: Term | Condition | None) -> Iterator[str]:
    """Yields the columns of the table that a term or a condition uses."""
    match each:
        case Column(name):
            yield name
        case Sum(left, right) | Compared(left, _, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)
        case IsNull(term) | IsIn(term) | IsTrue(term):
            yield from columns_of(term)
        case Not(condition):
            yield from columns_of(condition)
        case Together(conditions):
            for condition in conditions:
                yield from columns_of(condition)


def _quoted(text: str) -> str | None:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]:
        return text[1:-1]
    return None


def _split_unit(text: str) -> tuple[str, str]:
    """Returns the value and its unit, which begins at the first colon outside of quotes."""
    quote = ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == ":":
            return text[:place].strip(), text[place + 1 :].strip()
    return text, ""


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise LanguageError(f"has {len(text):,} characters; at most {_LONGEST:,} are read")
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = getattr(error, "offset", None)
        at = f" at character {place:,}" if place else ""
        raise LanguageError(f"{text!r:.80} is not understood{at}; {_HAS}") from None
    if _depth(node) > _DEEPEST:
        raise LanguageError(f"nests more than {_DEEPEST} deep")
    return node


def _depth(node: ast.AST) -> int:
    """Returns the depth of a tree, up to the limit, without recursion."""
    level: list[ast.AST] = [node]
    depth = 0
    while level and depth <= _DEEPEST:
        level = [child for each in level for child in ast.iter_child_nodes(each)]
        depth += 1
    return depth


def _refuse(node: ast.AST, text: str, why: str = "") -> NoReturn:
    part = ast.get_source_segment(text, node) or text
    place = getattr(node, "col_offset", 0) + 1
    raise LanguageError(f"{part!r:.60} at character {place:,} {why or f'is not in the language; {_HAS}'}")


def _term(node: ast.expr, text: str) -> Term:
    match node:
        case ast.Name():  # as written: Python's parser replaces some letters
            return Column(ast.get_source_segment(text, node) or node.id)
        case ast.Constant(str() as value):
            return Literal(value)
        case ast.Constant(bool() as value):
            return Literal(value)
        case ast.Constant(value) if type(value) in (int, float):
            return Literal(_number(node, text))
        case ast.UnaryOp(ast.USub(), ast.Constant(value)) if type(value) in (int, float):
            return Literal(-_number(node.operand, text))
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            return Sum(_term(left, text), _term(right, text), 1 if isinstance(operator, ast.Add) else -1)
        case ast.BinOp(_, ast.Div(), _):
            _refuse(node, text, "divides inside a term; / is allowed once, between two whole terms")
        case ast.Call(ast.Name("col"), [ast.Constant(str() | int() as name)], []):
            return Column(str(name))
        case ast.Call(ast.Name(name), arguments, []) if name in FUNCTIONS:
            least, most = FUNCTIONS[name]
            if len(arguments) < least or (most is not None and len(arguments) > most):
                _refuse(node, text, f"has {len(arguments)} arguments; {name}() takes {_count(least, most)}")
            return Call(name, tuple(_term(each, text) for each in arguments))
        case ast.Call(ast.Name(name)) if name in FUNCTIONS or name == "col":
            _refuse(node, text, f"calls {name}() with named arguments, or with too many arguments")
        case ast.Call(ast.Name(name)):
            _refuse(node, text, f"calls {name}(), which the language does not have; {_HAS}")
        case _:
            _refuse(node, text)


def _count(least: int, most: int | None) -> str:
    return f"{least}" if most == least else f"{least} or more"


def _number(node: ast.expr, text: str) -> Decimal:
    """Returns a number exactly as written, without conversion to a float."""
    written = (ast.get_source_segment(text, node) or "").replace("_", "")
    try:
        value = Decimal(written)
    except ArithmeticError:
        _refuse(node, text, "is not a decimal number")
    if not value.is_finite() or abs(value) >= 10**20 or 10**9 % Fraction(value).denominator:
        _refuse(node, text, "is not between -10^20 and 10^20 with at most nine decimals")
    return value


def _condition(node: ast.expr, text: str) -> Condition:
    match node:
        case ast.BoolOp(operator, values):
            return Together(tuple(_condition(each, text) for each in values), isinstance(operator, ast.And))
        case ast.UnaryOp(ast.Not(), value):
            return Not(_condition(value, text))
        case ast.Compare(left, [ast.Is() | ast.IsNot() as operator], [ast.Constant(None)]):
            found: Condition = IsNull(_term(left, text))
            return found if isinstance(operator, ast.Is) else Not(found)
        case ast.Compare(left, [ast.In() | ast.NotIn() as operator], [ast.Tuple() | ast.List() as several]):
            found = IsIn(_term(left, text), tuple(_literal(each, text) for each in several.elts))
            return found if isinstance(operator, ast.In) else Not(found)
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPERATORS:
            return Compared(_term(left, text), _OPERATORS[type(operator)], _term(right, text))
        case ast.Name() | ast.Call() | ast.Constant(bool()):
            return IsTrue(_term(node, text))
        case _:
            _refuse(
                node,
                text,
                "is not a condition; write a comparison (A == B, A < B, A is None, A in ('x', 'y')) or a "
                "Boolean column; 'and', 'or' and 'not' combine conditions",
            )


def _literal(node: ast.expr, text: str) -> Literal:
    found = _term(node, text)
    if not isinstance(found, Literal):
        _refuse(node, text, "is not a constant; the list after `in` takes only numbers and text values")
    return found
