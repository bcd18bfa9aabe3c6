"""From a selection of executions to SQL, for both databases. Pure.

A search goes along one index, its *driver*: that of one term, in the order of the list, so that a
page costs a page. All other terms are conditions on what comes along. Which term drives is asked
of the database, not of its statistics: each is counted up to `ENOUGH`, and the one with the fewest
wins. If all have more than that, the first in the order of the table `_DRIVERS` does, and a page
is full soon, unless hardly any execution meets both of two large terms.

The statements are made anew for each shape of a filter. They only name executions: their rows are
read by statements that are always the same.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import orjson

from rhythm.filters.fields import STATUSES
from rhythm.filters.terms import ATTRIBUTE, Term
from rhythm.record import Record
from rhythm.store.interfaces.operating import Order, Selection
from rhythm.store.lifecycle import BLOCKED, CANCELLED, COMPLETED, FAILED, PENDING, SUSPENDED

ENOUGH = 10_000  # entries of an index that are counted to find the shortest way
LAST_CHARACTER = "\U0010ffff"  # behind every text that begins with what stands before it
NUMBER = re.compile(r"(?a)-?\d+(\.\d+)?([eE][+-]?\d+)?")
NUMBER_CHARACTERS = 40  # a longer text is searched for as text only

Ask = Callable[[str, dict[str, Any]], list[Any]]
Spelling = tuple[str, Any]  # a text of SQL that stands for a value, with `{}` for it, and the value


class Dialect(ABC):
    """How a database writes what the two write differently."""

    now: str  # the time in microseconds
    with_attributes: str  # an execution has all these attributes, with values of the same types
    error: str  # the code of an error; exactly the expression of the index `executions_errors`
    # The condition of one name. As a range, only the index of names has the order of the list: the
    # planner of PostgreSQL would else read all executions that are newer.
    same_name = "e.name = n.value"
    by_name_first = False  # whether the names are part of the order, too

    @abstractmethod
    def same(self, column: str, of: str) -> str:
        """Returns the condition that two columns of a join are equal."""

    @abstractmethod
    def among(self, column: str, values: str) -> str:
        """Returns the condition that a column has one of many values, a parameter."""

    @abstractmethod
    def many(self, values: Sequence[str]) -> Any:
        """Returns the parameter for many values."""

    @abstractmethod
    def for_each_name(self, names: str, select: str, at: str) -> str:
        """Returns a statement that runs `select` for each name, as `n.value`.

        `at` is the column of the time.
        """

    @abstractmethod
    def spellings(self, text: str) -> list[Spelling]:
        """Returns how a value of an attribute is stored if it reads as this text: as a text, a
        number or a word of JSON."""


class Sqlite(Dialect):
    """The SQL of SQLite."""

    now = ":now"
    with_attributes = (
        "NOT EXISTS (SELECT 1 FROM json_each({}) w WHERE NOT EXISTS ("
        "SELECT 1 FROM json_each(e.attributes) b WHERE b.key = w.key AND b.value IS w.value "
        "AND replace(b.type, 'real', 'integer') = replace(w.type, 'real', 'integer')))"
    )
    error = "CASE WHEN json_valid(e.error) THEN substr(json_extract(e.error, '$.code'), 1, 200) END"

    def same(self, column: str, of: str) -> str:
        return f"{column} = {of}"

    def among(self, column: str, values: str) -> str:
        return f"{column} IN (SELECT value FROM json_each({values}))"

    def many(self, values: Sequence[str]) -> Any:
        return json.dumps(values)

    def for_each_name(self, names: str, select: str, at: str) -> str:
        return (
            f"SELECT f.id, f.{at} AS at FROM json_each({names}) n "
            f"CROSS JOIN executions f ON f.id IN (SELECT i.id FROM ({select}) i)"
        )

    def spellings(self, text: str) -> list[Spelling]:
        found: list[Spelling] = [("json_quote({})", text)]
        number = _number(text)
        if number is not None:  # SQLite stores the text that it makes of a real number itself
            found += [("{}", str(number))] if isinstance(number, int) else []
            found.append(("CAST({} AS TEXT)", float(number)))
            if number == int(number):
                found.append(("{}", str(int(number))))
        return _once(found + _words(text))


class Postgres(Dialect):
    """The SQL of PostgreSQL."""

    now = "(SELECT now_us())"
    with_attributes = (
        "NOT EXISTS (SELECT 1 FROM jsonb_each({}::jsonb) w "
        "WHERE (e.attributes::jsonb -> w.key) IS DISTINCT FROM w.value)"
    )
    error = r"""substring(e.error from '^\{"code": ?"([^"\\]{1,200})"')"""
    same_name, by_name_first = "e.name >= n.value AND e.name <= n.value", True

    def same(self, column: str, of: str) -> str:
        return f"{column} = ANY(ARRAY[{of}])"

    def among(self, column: str, values: str) -> str:
        return f"{column} = ANY({values}::text[])"

    def many(self, values: Sequence[str]) -> Any:
        return list(values)

    def for_each_name(self, names: str, select: str, at: str) -> str:
        return (
            f"SELECT i.id, i.at FROM unnest({names}::text[]) AS n(value) "
            f"CROSS JOIN LATERAL ({select}) i"
        )

    def spellings(self, text: str) -> list[Spelling]:
        found: list[Spelling] = [("{}", orjson.dumps(text).decode())]
        number = _number(text)
        if number is not None:
            whole = number == int(number)
            forms = [str(int(number))] if whole else []
            forms += [repr(float(number)), orjson.dumps(float(number)).decode()]
            found += [("{}", form) for form in forms]
        return _once(found + _words(text))


SQLITE, POSTGRES = Sqlite(), Postgres()


def _number(text: str) -> int | float | None:
    """Returns the number that a text is in JSON; None if it is none, or one that is not finite."""
    if len(text) > NUMBER_CHARACTERS or not NUMBER.fullmatch(text):
        return None
    try:
        number = json.loads(text)
    except ValueError:
        return None
    return None if number in (float("inf"), float("-inf")) else number


def _words(text: str) -> list[Spelling]:
    return [("{}", text)] if text in ("true", "false", "null") else []


def _once(found: Sequence[Spelling]) -> list[Spelling]:
    return list(dict.fromkeys(found))


class Part(Record):
    """One range of an index, in which a driver finds executions.

    `ranges` are the conditions that the index answers. `checks` must be met, too, for the term to
    be true.
    """

    ranges: tuple[str, ...]
    checks: tuple[str, ...] = ()
    source: Literal["executions", "attributes", "claims", "ids", "names"] = "executions"


class Driver(Record):
    """A way to find the executions that meet a term: ranges of an index that do not overlap.

    `orders`: the orders in which its index has them. `term`: the term that needs no other check.
    """

    parts: tuple[Part, ...]
    orders: tuple[Order, ...] = ()
    term: Term | None = None
    of_names: bool = False  # it finds only names in the scope


class Search:
    """The statements for one selection."""

    def __init__(self, selection: Selection, dialect: Dialect, now: int, order: Order) -> None:
        self.selection, self.dialect, self.order = selection, dialect, order
        self.values: dict[str, Any] = {"now": now}
        self.names = selection.shared_names
        self.checks = dict(self._checks())
        self.drivers = list(self._drivers())

    # statements

    def probe(self) -> str:
        """Returns the statement that counts what each driver finds, up to `ENOUGH`."""
        counts = (
            f"(SELECT count(*) FROM (SELECT 1 FROM ({self._union(driver, bare=True)}) AS u "
            f"LIMIT {ENOUGH}) AS c)"
            for driver in self.drivers
        )
        return f"SELECT {', '.join(counts)}"

    def page(self, driver: Driver, descending: bool, begins: bool) -> str:
        """Returns the statement for the time and id of executions, in the order of the list.

        `begins`: only those after the place `:at`, `:after`.
        """
        down = " DESC" if descending else ""
        union = self._union(driver, descending, begins, limited=True)
        return f"SELECT u.at, u.id FROM ({union}) AS u ORDER BY u.at{down}, u.id{down} LIMIT :limit"

    def count(self, driver: Driver) -> str:
        """Returns the statement that counts all executions of the selection."""
        return f"SELECT count(*) FROM ({self._union(driver)}) AS u"

    def _union(
        self,
        driver: Driver,
        descending: bool = True,
        begins: bool = False,
        *,
        limited: bool = False,
        bare: bool = False,
    ) -> str:
        parts = (
            self._part(driver, part, descending, begins, limited, bare) for part in driver.parts
        )
        return " UNION ALL ".join(f"SELECT * FROM ({part}) AS q{n}" for n, part in enumerate(parts))

    def _part(
        self, driver: Driver, part: Part, descending: bool, begins: bool, limited: bool, bare: bool
    ) -> str:
        checks = () if bare else (*part.checks, *self._others(driver))
        indexed = part.source == "attributes" and self.order == "created"
        alone = indexed and not checks  # the index of attributes says it all
        at, id = ("a.created_at", "a.execution_id") if indexed else (f"e.{self.order}_at", "e.id")
        place = [at, id]
        if part.source == "names" and self.dialect.by_name_first:
            place = ["e.name", *place]
        ranges = part.ranges
        if part.source == "names" and not limited:  # without an order there is no need of one name
            part, ranges = Part(()), (self.dialect.among("e.name", ":shared"),)
        native = self.order in driver.orders
        where = [*self._join(part, alone), *ranges, *map(_unindexed, checks)]
        if begins:
            after = " AND ".join(self._after(place, descending))
            where.append(after if native else _unindexed(after))
        text = f"SELECT {id} AS id, {at} AS at FROM {_SOURCES[part.source, alone]}"
        text += f" WHERE {' AND '.join(where)}"
        if limited:
            down = " DESC" if descending else ""
            text += f" ORDER BY {', '.join(f'{each}{down}' for each in place)} LIMIT :limit"
        if part.source == "names":
            return self.dialect.for_each_name(":shared", text, f"{self.order}_at")
        return text

    def _join(self, part: Part, alone: bool) -> Iterator[str]:
        """Yields the conditions that join a source to roots."""
        if alone:
            return
        # The indexes of the lists have only roots: who goes by an id must not go along them.
        by_id = part.source in ("attributes", "claims", "ids")
        yield _unindexed("e.parent_id IS NULL") if by_id else "e.parent_id IS NULL"
        if part.source == "attributes":
            yield self.dialect.same("e.id", "a.execution_id")
        elif part.source == "claims":
            yield "r.state = 1"
            yield self.dialect.same("e.id", "r.id")

    def _after(self, place: Sequence[str], descending: bool) -> Iterator[str]:
        """Yields the conditions for what comes after the place where a page begins."""
        sign = "<" if descending else ">"
        if len(place) > 2:
            yield f"({', '.join(place)}) {sign} (n.value, :at, :after)"
            return
        yield f"{place[0]} {sign}= :at"  # for an index that has only the time
        yield f"({', '.join(place)}) {sign} (:at, :after)"

    def _others(self, driver: Driver) -> Iterator[str]:
        """Yields the checks of all terms but the one that drives, and those of the selection."""
        for term, check in self.checks.items():
            if term is not driver.term:
                yield check
        yield from self._restrictions(driver)

    # choosing a driver

    def best(self, counts: Sequence[int]) -> Driver:
        """Returns the driver to take, by how much each finds.

        One that finds few can be sorted; of those that find many, only one that has the order.
        """
        few = min(counts)
        if few < ENOUGH:
            return self.drivers[list(counts).index(few)]
        return next((each for each in self.drivers if self.order in each.orders), _NEWEST)

    # drivers, in the order in which they are taken if all find many

    def _drivers(self) -> Iterator[Driver]:
        for field in _DRIVERS:
            for term in self.selection.filter.terms:
                if term.field == field and (parts := tuple(_DRIVERS[field](self, term))):
                    orders: tuple[Order, ...] = _ORDERS.get(field, ("created",))
                    yield Driver(parts, orders, term, field == "workflow")
        if self.selection.filter.of("workflow") is None and self.names is not None:
            yield Driver(tuple(self._by_names(None)), ("created",), None, True)

    def _by_names(self, term: Term | None) -> Iterator[Part]:
        if term is None or not term.negative:
            self.values["shared"] = self.dialect.many(self.names or ())
            yield Part((self.dialect.same_name,), (), "names")

    def _by_status(self, term: Term) -> Iterator[Part]:
        """Yields the ranges of statuses, unless most executions have one of them."""
        statuses = _meant(term)
        for status in statuses if "completed" not in statuses else ():
            check = self._status(status)
            if status in _ENDS:
                yield Part((f"e.status = {_ENDS[status]}", "e.status IN (6, 7, 8)"))
            elif status == "running":
                yield Part(("e.finished_at IS NULL",), (check,), "claims")
            elif status == "paused":
                held = "(e.status = 2 OR e.paused_at IS NOT NULL)"
                yield Part(("e.status < 5", held), (check,))
            else:
                number = PENDING if status == "pending" else SUSPENDED
                yield Part(("e.finished_at IS NULL", f"e.status = {number}"), (check,))

    def _by_error(self, term: Term) -> Iterator[Part]:
        for value in _positive(term):
            code = f"{self.dialect.error} = {self._value(value[:200])}"
            yield Part((code, "e.status IN (6, 7, 8)", "e.error IS NOT NULL"))

    def _by_attribute(self, term: Term) -> Iterator[Part]:
        name = self._value(term.name)
        for value in self._spelled(term) if not term.negative else ():
            yield Part((f"a.name = {name}", f"a.value = {value}"), (), "attributes")

    def _by_starter(self, term: Term) -> Iterator[Part]:
        for value in _positive(term):
            yield Part((f"e.started_by = {self._value(value)}",))

    def _by_id(self, term: Term) -> Iterator[Part]:
        for begin in _apart(term.values):
            yield Part(self._range("e.id", begin), (), "ids")

    def _by_key(self, term: Term) -> Iterator[Part]:
        for begin in _apart(term.values):
            yield Part(self._range("e.key", begin), (_NOT_PERSONAL,), "ids")

    def _by_time(self, term: Term) -> Iterator[Part]:
        yield Part(tuple(self._times(term)))

    def _by_stuck(self, term: Term) -> Iterator[Part]:
        started = f"e.created_at < {self._ago(term)}"
        for status in (PENDING, SUSPENDED, 2):
            live = ("e.finished_at IS NULL", f"e.status = {status}", started)
            yield Part(live, tuple(self._stuck(term)))

    # checks: the condition of each term

    def _checks(self) -> Iterator[tuple[Term, str]]:
        for term in self.selection.filter.terms:
            check = " AND ".join(self._check(term))
            yield term, f"NOT {_unindexed(check)}" if term.negative else check

    def _check(self, term: Term) -> Iterator[str]:
        match term.field:
            case "status":
                yield f"({' OR '.join(f'({self._status(each)})' for each in term.values)})"
            case "workflow":
                yield self._among("e.name", term.values)
            case "queue" | "version" | "started_by":
                yield self._among(f"e.{term.field}", term.values)
            case "error":
                yield self._among(self.dialect.error, [value[:200] for value in term.values])
                yield "e.status IN (6, 7, 8)"
            case "attr":
                yield (
                    "EXISTS (SELECT 1 FROM execution_attributes t WHERE "
                    f"{self.dialect.same('t.execution_id', 'e.id')} AND "
                    f"t.name = {self._value(term.name)} AND "
                    f"t.value IN ({', '.join(self._spelled(term))}))"
                )
            case "id" | "key":
                column = f"e.{term.field}"
                ranges = (" AND ".join(self._range(column, each)) for each in term.values)
                yield f"({' OR '.join(ranges)})"
                if term.field == "key":
                    yield _NOT_PERSONAL
            case "stuck":
                yield f"e.created_at < {self._ago(term)}"
                yield from self._stuck(term)
            case "line":
                yield "e.finished_at IS NULL"
                yield self._line()
            case _:
                yield from self._times(term)

    def _restrictions(self, driver: Driver) -> Iterator[str]:
        """Yields the conditions of the selection that are no terms."""
        selection = self.selection
        if selection.names is not None and not driver.of_names:
            yield self._among("e.name", selection.names)
        if selection.before is not None:
            yield f"e.created_at < {self._value(selection.before)}"
        if selection.attributes != "{}":
            yield self.dialect.with_attributes.format(self._value(selection.attributes))
        if selection.type is not None:
            yield f"e.type = {int(selection.type)}"
        if selection.paused:
            yield "e.paused_at IS NOT NULL"
        if selection.unpaused:
            yield "e.paused_at IS NULL"
        if selection.unasked:
            yield "e.cancel_requested_at IS NULL"
        if selection.unretried:
            yield "NOT EXISTS (SELECT 1 FROM executions m WHERE m.retry_of = e.id)"

    def _status(self, status: str) -> str:
        """Returns the condition of a status, as `execution` in queries.sql shows it."""
        if status in _ENDS:
            return f"e.status = {_ENDS[status]}"
        if status == "completed":
            return f"e.status = {COMPLETED} AND e.finished_at IS NOT NULL"
        same = self.dialect.same
        runs = (
            f"EXISTS (SELECT 1 FROM ready s WHERE {same('s.id', 'e.id')} AND s.state = 1 AND ("
            "e.type = 1 OR e.status = 0 OR EXISTS (SELECT 1 FROM workflow_execution_context c "
            f"WHERE {same('c.execution_id', 'e.id')} AND "
            "(c.owned <> '[]' OR c.awaiting = 'null'))))"
        )
        live = "e.finished_at IS NULL AND"
        if status == "running":
            return f"{live} e.paused_at IS NULL AND {runs}"
        if status == "paused":
            return f"{live} (e.paused_at IS NOT NULL OR (e.status = 2 AND NOT {runs}))"
        number = PENDING if status == "pending" else SUSPENDED
        return f"{live} e.status = {number} AND e.paused_at IS NULL AND NOT {runs}"

    def _times(self, term: Term) -> Iterator[str]:
        if term.field == "age":
            yield f"e.created_at {'<' if term.op == 'over' else '>'} {self._ago(term)}"
            return
        column = f"e.{term.field}_at"
        if term.field == "finished":
            yield f"{column} IS NOT NULL"
        if term.after is not None:
            yield f"{column} >= {self._value(term.after)}"
        if term.before is not None:
            yield f"{column} < {self._value(term.before)}"

    def _stuck(self, term: Term) -> Iterator[str]:
        """Yields that nothing of a family has moved since then, or will move by itself.

        Guards are not worded like the conditions of partial indexes: the planner would go through
        those from one end to the other.
        """
        ago = self._ago(term)
        yield "e.finished_at IS NULL AND e.paused_until IS NULL"
        yield from self._none(
            "workflow_execution_context", "execution_id", f"t.updated_at >= {ago}"
        )
        tried = "(SELECT x.started_at FROM executions x WHERE x.id = t.id)"
        yield from self._none(
            "ready",
            "id",
            f"(t.state = 1 OR (t.state = 0 AND t.order_key >= {ago}) OR (t.state = 2 AND "
            f"(t.attempt = 0 OR coalesce({tried}, 0) >= {ago})))",
        )
        yield from self._none(
            "timer_tasks",
            "execution_id",
            "coalesce(t.fired_at, t.cancelled_at, 0) = 0 AND coalesce(t.fire_at, 0) > 0",
        )
        for table in ("event_waits", "approvals"):
            open_ = "coalesce(t.ended_at, 0) = 0 AND coalesce(t.deadline_at, 0) > 0"
            yield from self._none(table, "execution_id", open_)

    def _none(self, table: str, column: str, condition: str) -> Iterator[str]:
        """Yields that an execution, and everything below it, has no such row."""
        for family in (
            f"t.{column} = e.id",
            f"t.{column} > e.id || '.' AND t.{column} < e.id || '/'",
        ):
            yield f"NOT EXISTS (SELECT 1 FROM {table} t WHERE {family} AND {condition})"

    def _line(self) -> str:
        """Returns the condition that an execution is at one of the statements of the selection."""
        places = [
            f"(e.version = {self._value(version)} AND EXISTS (SELECT 1 FROM "
            "workflow_execution_context c WHERE "
            f"{self.dialect.same('c.execution_id', 'e.id')} AND c.statement IN "
            f"({', '.join(str(int(each)) for each in statements)})))"
            for version, statements in self.selection.lines
            if statements
        ]
        return f"({' OR '.join(places)})" if places else "FALSE"

    # values

    def _value(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def _among(self, column: str, values: Sequence[str]) -> str:
        return self.dialect.among(column, self._value(self.dialect.many(tuple(values))))

    def _spelled(self, term: Term) -> list[str]:
        return [
            text.format(self._value(value))
            for each in term.values
            for text, value in self.dialect.spellings(each)
        ]

    def _range(self, column: str, begin: str) -> tuple[str, str]:
        return (
            f"{column} >= {self._value(begin)}",
            f"{column} < {self._value(begin + LAST_CHARACTER)}",
        )

    def _ago(self, term: Term) -> str:
        return f"{self.dialect.now} - {int(term.us)}"


_ENDS = {"failed": FAILED, "cancelled": CANCELLED, "blocked": BLOCKED}
# Keys that people sent over HTTP are stored as hashes of theirs, and found by nobody.
_NOT_PERSONAL = "NOT (e.key LIKE 'person:%%' AND length(e.key) = 71)"
_SOURCES = {
    ("executions", False): "executions e",
    ("ids", False): "executions e",
    ("names", False): "executions e",
    ("claims", False): "ready r CROSS JOIN executions e",
    ("attributes", False): "execution_attributes a CROSS JOIN executions e",
    ("attributes", True): "execution_attributes a",
}
# What is left if no term has an index with the order of the list: everything, newest first.
_NEWEST = Driver((Part(("e.created_at >= 0",)),), ("created",))
_DRIVERS: dict[str, Callable[[Search, Term], Iterator[Part]]] = {
    "finished": Search._by_time,
    "status": Search._by_status,
    "error": Search._by_error,
    ATTRIBUTE: Search._by_attribute,
    "key": Search._by_key,
    "started_by": Search._by_starter,
    "id": Search._by_id,
    "stuck": Search._by_stuck,
    "workflow": Search._by_names,
    "created": Search._by_time,
    "age": Search._by_time,
}
# Of fields whose index has not the order of creation: the orders that it has.
_ORDERS: dict[str, tuple[Order, ...]] = {"finished": ("finished",), "id": (), "key": ()}


def _unindexed(condition: str) -> str:
    """Returns a condition that no index answers, and that is false where it is unknown.

    So the planner goes along the index of the driver, whatever it believes of the others, and looks
    at each execution that comes along.
    """
    return f"coalesce(({condition}), FALSE)"


def _meant(term: Term) -> tuple[str, ...]:
    """Returns the statuses that a term allows."""
    if not term.negative:
        return term.values
    return tuple(status for status in STATUSES if status not in term.values)


def _positive(term: Term) -> tuple[str, ...]:
    return () if term.negative else term.values


def _apart(begins: Sequence[str]) -> list[str]:
    """Returns beginnings of which none begins with another."""
    return [
        each
        for each in begins
        if not any(each != other and each.startswith(other) for other in begins)
    ]


def ids_of_page(
    ask: Ask,
    search: Search,
    after: tuple[int, str] | None,
    limit: int,
    descending: bool = True,
) -> list[tuple[int, str]]:
    """Returns the times and ids of a page of the executions of a search."""
    text = search.page(_chosen(ask, search), descending, after is not None)
    at, id = after or (0, "")
    return ask(text, {**search.values, "limit": limit, "at": at, "after": id})


def counted(ask: Ask, search: Search) -> int:
    """Returns how many executions a search finds."""
    found: int = ask(search.count(_chosen(ask, search)), search.values)[0][0]
    return found


def _chosen(ask: Ask, search: Search) -> Driver:
    drivers = search.drivers
    if not drivers:
        return _NEWEST
    if len(drivers) == 1 and search.order in drivers[0].orders:
        return drivers[0]
    return search.best(ask(search.probe(), search.values)[0])
