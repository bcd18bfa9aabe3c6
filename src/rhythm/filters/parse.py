"""Reads the text of a filter. What is wrong is said with its place, what was probably meant, and an
example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from rhythm.durations import duration_s
from rhythm.filters.fields import FIELDS, OTHER_WORDS, STATUSES, Field
from rhythm.filters.terms import (
    ATTRIBUTE,
    DAY_US,
    EPOCH,
    LATEST_US,
    MS,
    ExecutionFilter,
    FilterError,
    Term,
)
from rhythm.limits import TEXTS
from rhythm.suggest import nearest

_SIGNS = ":=<>"
_DAY = re.compile(r"(?a)\d{4}-\d{2}-\d{2}")
_US = timedelta(microseconds=1)


def parse_filter(text: Any) -> ExecutionFilter:
    """Returns the filter that a text says. Raises `FilterError` (a `ValueError`) if none."""
    if not isinstance(text, str):
        raise FilterError(f"a filter is a text, not {text!r:.80}", "", 0)
    if len(text) > TEXTS.filter:
        raise FilterError(
            f"it has {len(text):,} characters, and at most {TEXTS.filter:,} are read",
            text,
            TEXTS.filter,
        )
    return _Reader(text).filter()


def term_of(field: str, values: Iterable[str], name: str = "") -> Term:
    """Returns the term that an execution has one of these values in a field of texts.

    For values that came as they are, such as options of a command: nothing in them is syntax.
    Raises `FilterError` if a value cannot be one of this field.
    """
    known = FIELDS[field]
    return Term(field, values=tuple(_value(known, value, value, 0) for value in values), name=name)


class _Reader:
    """The text of a filter, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def filter(self) -> ExecutionFilter:
        terms: dict[tuple[str, str, bool], Term] = {}
        self._skip_space()
        while self.at < len(self.text):
            begin = self.at
            term = self._term()
            about = term.field, term.name, term.negative
            if about in terms:
                raise self._error(
                    f"`{terms[about]}` says something about this already; several values of one "
                    "field are separated by commas, such as status:failed,cancelled",
                    begin,
                )
            terms[about] = term
            if len(terms) > TEXTS.filter_terms:
                raise self._error(f"a filter has at most {TEXTS.filter_terms} terms", begin)
            self._skip_space()
        return ExecutionFilter(tuple(terms.values()))

    def _term(self) -> Term:
        begin = self.at
        negative = self._next("-")
        field, name = self._field(begin)
        sign = self._sign(field)
        if negative and not field.may_negate:
            raise self._error(
                f"`{field.name}` cannot be negated; these can: "
                + ", ".join(known.name for known in FIELDS.values() if known.may_negate),
                begin,
            )
        match field.kind:
            case "length":
                return self._length(field, sign)
            case "span":
                at, value = self._one_value(field)
                after, before = self._span(value, at)
                return Term(field.name, "within", after=after, before=before)
        values = tuple(_value(field, value, self.text, at) for at, value in self._values(field))
        return Term(field.name, "is", tuple(dict.fromkeys(values)), name, negative=negative)

    # the parts of a term

    def _field(self, begin: int) -> tuple[Field, str]:
        """Reads the name of a field; of an attribute also its own name."""
        at = self.at
        if self.text.startswith(f"{ATTRIBUTE}.", at):
            self.at += len(ATTRIBUTE) + 1
            return FIELDS[ATTRIBUTE], self._attribute()
        while self.at < len(self.text) and not self._ends(self.text[self.at], _SIGNS + '",'):
            self.at += 1
        word = self.text[at : self.at]
        signed = self.at < len(self.text) and self.text[self.at] in _SIGNS
        field = FIELDS.get(word)
        if field is None or (word == ATTRIBUTE and not signed):
            raise self._unknown(word, begin, signed)
        if word == ATTRIBUTE:
            raise self._error("say which attribute: attr.customer=acme", begin)
        return field, ""

    def _unknown(self, word: str, begin: int, signed: bool) -> FilterError:
        if not signed:
            shown = f"`{word:.80}`" if word else f"`{self.text[self.at :][:1]}`"
            return self._error(
                f"{shown} is no term: write FIELD:VALUE, such as {FIELDS['status'].example} or "
                f"{FIELDS['id'].example}",
                begin,
            )
        near = OTHER_WORDS.get(word.lower()) or nearest(word, FIELDS)
        help = (
            f"did you mean `{near}`, as in {FIELDS[near].example}?"
            if near
            else f"there are {', '.join(FIELDS)}"
        )
        return self._error(f"there is no field `{word:.80}`; {help}", begin)

    def _attribute(self) -> str:
        at = self.at
        if self.text[at : at + 1] == '"':
            name = self._quoted()
        else:
            while self.at < len(self.text) and not self._ends(self.text[self.at], _SIGNS + '",'):
                self.at += 1
            name = self.text[at : self.at]
        if not name or len(name) > TEXTS.attributes_bytes:
            raise self._error("the name of the attribute is missing: attr.customer=acme", at)
        _refuse_unstorable(name, self.text, at)
        return name

    def _sign(self, field: Field) -> str:
        """Reads the sign between a field and its value."""
        sign, at = self.text[self.at : self.at + 1], self.at
        if sign not in _SIGNS or not sign:
            raise self._error(f"`:` and a value are missing, as in {field.example}", at)
        if (sign in "<>") != (field.kind == "length"):
            how = "with > or <" if field.kind == "length" else "with :"
            raise self._error(f"`{field.name}` is written {how}: {field.example}", at)
        self.at += 1
        if self._next("="):
            raise self._error(f"there is no sign `{sign}=`; write {field.example}", at)
        return sign

    def _length(self, field: Field, sign: str) -> Term:
        at, value = self._one_value(field)
        if field.name == "stuck" and sign == "<":
            raise self._error(f"it is written with >: {field.example}", at - 1)
        try:
            ms = round(duration_s(value) * 1000)
        except ValueError as problem:
            raise self._error(f"{problem}: {field.example}", at) from None
        return Term(field.name, "over" if sign == ">" else "under", us=ms * MS)

    def _span(self, value: str, at: int) -> tuple[int | None, int | None]:
        """Returns the bounds of a span: a day, or two days or times with `..` between them."""
        first, dots, last = value.partition("..")
        if not dots:
            if not _DAY.fullmatch(value):
                raise self._error(
                    f"`{value:.80}` is no span: write a day (2026-11-18), two "
                    "(2026-11-18..2026-11-19), or times with their zones "
                    "(2026-11-18T08:00Z..2026-11-18T09:00Z)",
                    at,
                )
            last = first
        after = self._us(first, at, 0) if first else None
        before = self._us(last, at + len(first) + len(dots), DAY_US) if last else None
        if after is None and before is None:
            raise self._error("a span has a beginning or an end: 2026-11-18..", at)
        if after is not None and before is not None and after >= before:
            raise self._error(f"the span `{value:.80}` ends before it begins", at)
        return after, before

    def _us(self, text: str, at: int, day_us: int) -> int:
        """Returns a time in microseconds; of a day its beginning, and `day_us` later."""
        try:
            us = (
                (date.fromisoformat(text) - EPOCH.date()) // timedelta(days=1) * DAY_US + day_us
                if _DAY.fullmatch(text)
                else _moment_us(text)
            )
        except ValueError:
            raise self._error(
                f"`{text:.80}` is no day (2026-11-18) and no time with its zone "
                "(2026-11-18T08:00Z)",
                at,
            ) from None
        if not (0 if day_us == 0 else 1) <= us <= LATEST_US:
            raise self._error(f"`{text:.80}` is not between 1970 and 9999", at)
        return us

    # values

    def _values(self, field: Field) -> list[tuple[int, str]]:
        """Reads the alternatives of a term, with their places."""
        found = [self._read_value(field)]
        while self._next(","):
            found.append(self._read_value(field))
            if len(found) > TEXTS.filter_values:
                raise self._error(f"a term has at most {TEXTS.filter_values} values", found[-1][0])
        return found

    def _one_value(self, field: Field) -> tuple[int, str]:
        found = self._read_value(field)
        if self.text[self.at : self.at + 1] == ",":
            raise self._error(f"`{field.name}` has one value: {field.example}", self.at)
        return found

    def _read_value(self, field: Field) -> tuple[int, str]:
        at = self.at
        if self.text[at : at + 1] == '"':
            value = self._quoted()
            follows = self.text[self.at : self.at + 1]
            if follows and not self._ends(follows, ","):
                raise self._error("after the closing quote comes a space or a comma", self.at)
            return at, value
        while self.at < len(self.text) and not self._ends(self.text[self.at], ","):
            if self.text[self.at] == '"':
                raise self._error(
                    'a value with a quote in it stands in quotes itself: "a \\"b\\""', self.at
                )
            self.at += 1
        if self.at == at:
            raise self._error(
                f'a value is missing here, as in {field.example}; the empty text is written ""',
                at,
            )
        return at, self.text[at : self.at]

    def _quoted(self) -> str:
        begin, made = self.at, ""
        self.at += 1
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == '"':
                return made
            if character == "\\":
                character = self.text[self.at : self.at + 1]
                if character not in ('"', "\\"):
                    raise self._error('in quotes, a \\ stands before " or \\ only', self.at - 1)
                self.at += 1
            made += character
        raise self._error("the closing quote is missing", begin)

    # characters

    def _next(self, character: str) -> bool:
        """Reads this character, if it is the next one."""
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def _ends(self, character: str, also: str) -> bool:
        return character.isspace() or character in also

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _error(self, problem: str, at: int) -> FilterError:
        return FilterError(problem, self.text, at)


def _moment_us(text: str) -> int:
    if len(text) > TEXTS.time:
        raise ValueError
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError
    return (at - EPOCH) // _US


def _value(field: Field, value: str, text: str, at: int) -> str:
    """Returns the value of a term, in its canonical form."""
    _refuse_unstorable(value, text, at)
    match field.kind:
        case "status" if value not in STATUSES:
            near = nearest(value, STATUSES)
            help = f"did you mean `{near}`?" if near else f"it is one of {', '.join(STATUSES)}"
            raise FilterError(f"there is no status `{value:.80}`; {help}", text, at)
        case "number":
            if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 7 and int(value)):
                raise FilterError(f"`{value:.80}` is no line: write {field.example}", text, at)
            return str(int(value))
        case "beginning" if not value:
            raise FilterError(f"`{field.name}` needs a beginning: {field.example}", text, at)
    if len(value.encode()) > TEXTS.searched_bytes:
        raise FilterError(
            f"a value that is searched for has at most {TEXTS.searched_bytes} bytes", text, at
        )
    return value


def _refuse_unstorable(value: str, text: str, at: int) -> None:
    """Raises `FilterError` for a text that no database can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise FilterError("it has half of a surrogate pair: it is no text", text, at) from None
    if "\0" in value:
        raise FilterError("it has the character NUL, which no database holds", text, at)


def as_terms(given: Mapping[str, Iterable[str]]) -> tuple[Term, ...]:
    """Returns the terms of fields that were given apart from a filter, by name."""
    return tuple(term_of(field, values) for field, values in given.items())
