"""Statements straight over libpq: prepared when first used, any number of them in one round trip.

psycopg opens the connection, reads the values of rows and names the errors. Its cursors are left
out: with them a statement takes four times as long, and five times as much processor time.
"""

from __future__ import annotations

import logging
import re
import select
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from itertools import count
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import psycopg
from psycopg import errors
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from rhythm.store.callers import FetchedRows

log = logging.getLogger("rhythm.store")

Row = Any  # a tuple, as wide as its statement says

BINARY = Format.BINARY
NO_ROWS = FetchedRows([])
# Statements that a server keeps for one connection. All that have names are far fewer; those that
# are put together from what people ask for may be many.
MAX_PREPARED = 500
ONCE = b"/* once */ "  # how statements begin that are not prepared
DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
PLACE = re.compile(rb"%\((\w+)\)[sb](?:::(\w+(?:\[\])?))?|%%")


# values, as the server reads them in binary

Dump = Callable[[Any], bytes]
_length = struct.Struct("!i").pack
_int8, _int4, _int2 = (struct.Struct(f"!{size}").pack for size in "qih")
_float8 = struct.Struct("!d").pack
NULL = _length(-1)


def _text(value: str) -> bytes:
    return value.encode()


def _bool(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _array(oid: int, dump: Dump) -> Dump:
    """Returns what writes a list of values of one type."""
    empty, head = struct.pack("!iii", 0, 0, oid), struct.Struct("!iiiii").pack

    def write(values: Sequence[Any]) -> bytes:
        if not values:
            return empty
        parts = [head(1, 1, oid, len(values), 1)]
        for value in values:
            if value is None:
                parts.append(NULL)
            else:
                item = dump(value)
                parts += _length(len(item)), item
        return b"".join(parts)

    return write


class Type(NamedTuple):
    """A type of PostgreSQL, and how a value of it is written."""

    oid: int
    dump: Dump


SCALARS = {
    "text": Type(25, _text), "bigint": Type(20, _int8), "int": Type(23, _int4),
    "smallint": Type(21, _int2), "bool": Type(16, _bool), "float8": Type(701, _float8),
    "bytea": Type(17, bytes),
}  # fmt: skip
ARRAYS = {
    "text": 1009, "bigint": 1016, "int": 1007, "smallint": 1005, "bool": 1000, "float8": 1022,
    "bytea": 1001,
}  # fmt: skip
TYPES = SCALARS | {
    f"{name}[]": Type(oid, _array(SCALARS[name].oid, SCALARS[name].dump))
    for name, oid in ARRAYS.items()
}
# Of a value whose place has no cast. One type for all integers: otherwise the size of a number
# would decide the plan.
BY_CLASS = {
    str: TYPES["text"], int: TYPES["bigint"], bool: TYPES["bool"], float: TYPES["float8"],
    bytes: TYPES["bytea"],
}  # fmt: skip
UNKNOWN = Type(0, bytes)  # of a null whose place has no cast


def _type_of(value: Any) -> Type:
    if value is None:
        return UNKNOWN
    for kind in type(value).__mro__:
        if found := BY_CLASS.get(kind):
            return found
    raise TypeError(f"{type(value).__name__} needs a cast where it stands in its statement")


# statements


class Statement(NamedTuple):
    """A statement with `$1`, `$2` … for its values, which are given by these names."""

    text: bytes
    names: tuple[str, ...]
    casts: tuple[Type | None, ...]


@cache
def statement_of(text: bytes) -> Statement:
    """Returns a statement whose values stand as `%(name)s`.

    A cast to a type that we can write (`%(name)s::bigint[]`) says how the value is sent; otherwise
    its class does.
    """
    casts: dict[str, Type | None] = {}

    def numbered(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return b"%"
        name, cast = found[1].decode(), found[2]
        casts[name] = casts.get(name) or (TYPES.get(cast.decode()) if cast else None)
        place = b"$%d" % (list(casts).index(name) + 1)
        return place + b"::" + cast if cast else place

    written = PLACE.sub(numbered, text)
    return Statement(written, tuple(casts), tuple(casts.values()))


class BoundStatement(NamedTuple):
    """A statement with its values, ready to be sent."""

    text: bytes
    values: Sequence[bytes | None] = ()
    types: tuple[int, ...] = ()


def bind(
    text: bytes, values: Mapping[str, Any], read: Callable[[bytes], Statement] = statement_of
) -> BoundStatement:
    """Returns a statement with these values."""
    _, names, casts = statement = read(text)
    given = [values[name] for name in names]
    types = [cast or _type_of(value) for cast, value in zip(casts, given, strict=True)]
    written = [
        None if value is None else kind.dump(value)
        for kind, value in zip(types, given, strict=True)
    ]
    return BoundStatement(statement.text, written, tuple([kind.oid for kind in types]))


def bind_once(text: bytes, values: Mapping[str, Any]) -> BoundStatement:
    """Returns a statement of which there are many forms, each used seldom.

    It is neither kept here nor prepared: so many forms would displace the statements of workers.
    """
    return bind(ONCE + text, values, statement_of.__wrapped__)


# the exchange with the server

P = ParamSpec("P")
T = TypeVar("T")


class Sent(NamedTuple):
    """Statements that were sent together: after an error of one the rest are not done."""

    statements: Sequence[BoundStatement]
    # Whether each is prepared with it: that is answered, too.
    unprepared: Sequence[bool]


def piped(
    method: Callable[Concatenate[Wire, P], T],
) -> Callable[Concatenate[Wire, P], T]:
    """Runs the method in libpq's pipeline mode, which ends once all answers were read.

    If it does not end as it should, the connection is closed: nobody knows what is still to come
    on it.
    """

    @wraps(method)
    def inside(self: Wire, /, *args: P.args, **kwargs: P.kwargs) -> T:
        pgconn = self.pgconn
        try:
            pgconn.enter_pipeline_mode()
            answer = method(self, *args, **kwargs)
            if not self.posted and self.awaited is None:
                pgconn.exit_pipeline_mode()
            return answer
        except BaseException as problem:
            if not isinstance(problem, psycopg.Error) or pgconn.pipeline_status:
                pgconn.finish()
            raise

    return inside


class Wire:
    """Exchanges statements for answers with the server of one connection.

    `prepares`: the server keeps statements for this connection. Otherwise each is sent whole.
    """

    def __init__(self, connection: psycopg.Connection[Row], prepares: bool) -> None:
        self.pgconn: PGconn = connection.pgconn
        # What was sent, and its answers were not read yet: those that nobody waits for, and after
        # them those that somebody does.
        self.posted: list[Sent] = []
        self.awaited: tuple[Sent, list[Sent]] | None = None  # and what was posted behind it
        self._reader, self._prepares = Transformer(connection), prepares
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()  # of their names: one that failed is not used again
        self._poll = select.poll()
        self._poll.register(self.pgconn.socket, select.POLLIN)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, or has failed and must be rolled back."""
        return self.pgconn.transaction_status in (
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
        )

    @piped
    def exchange(
        self,
        asked: Sequence[BoundStatement],
        answer_s: float,
        behind: Sequence[BoundStatement] = (),
    ) -> list[FetchedRows]:
        """Sends statements in one round trip. Returns the answer to each.

        Raises the server's error about the first that fails; those after it are not done. A server
        that does not answer for `answer_s` is given up, and so is the connection after any other
        exception. What is `behind` travels with them, and is posted.
        """
        sent = self._send_all(asked)
        posted = [self._send_all(behind)] if behind else []
        self._flush(answer_s)
        return self._received(sent, posted, answer_s)

    @piped
    def send(
        self,
        asked: Sequence[BoundStatement],
        answer_s: float,
        behind: Sequence[BoundStatement] = (),
    ) -> None:
        """Sends statements, and does not wait for the answers: `receive` is to be called next.

        What is `behind` travels with them, and is posted.
        """
        sent = self._send_all(asked)
        self.awaited = sent, [self._send_all(behind)] if behind else []
        self._flush(answer_s)

    @piped
    def receive(self, answer_s: float) -> list[FetchedRows]:
        """Returns the answers to what was sent, as `exchange` does."""
        awaited, self.awaited = self.awaited, None
        assert awaited is not None, "something was sent"
        return self._received(*awaited, answer_s)

    @piped
    def post(self, statements: Sequence[BoundStatement], answer_s: float) -> None:
        """Sends statements that are a transaction of their own, and does not wait for the answers.

        They are read when the connection is used the next time. A failure is only logged.
        """
        self.posted.append(self._send_all(statements))
        self._flush(answer_s)

    @piped
    def settle(self, answer_s: float) -> None:
        """Reads the answers to what was posted."""
        self._read_posted(answer_s)

    def _received(self, sent: Sent, posted: Sequence[Sent], answer_s: float) -> list[FetchedRows]:
        """Returns the answers to what was sent; `posted` was sent behind it."""
        self._read_posted(answer_s)
        self.posted = list(posted)
        answers, failed = self._answers(sent, answer_s)
        if failed is not None:
            self._read_posted(answer_s)
            self.pgconn.exit_pipeline_mode()
            raise errors.error_from_result(failed, "utf-8")
        return answers

    def _send_all(self, statements: Sequence[BoundStatement]) -> Sent:
        sent = Sent(statements, [self._send(each) for each in statements])
        self.pgconn.pipeline_sync()
        return sent

    def _send(self, asked: BoundStatement) -> bool:
        """Sends a statement. Returns whether it is prepared with it: that is answered, too."""
        text, values, types = asked
        formats = [BINARY] * len(values)
        full = len(self._names) >= MAX_PREPARED and (text, types) not in self._names
        if full or not self._prepares:
            self.pgconn.send_query_params(text, values, types, formats, BINARY)
            return False
        name = self._names.get((text, types))
        unprepared = name is None
        if name is None and text.startswith(ONCE):
            self.pgconn.send_query_params(text, values, types, formats, BINARY)
            return False
        if name is None:
            name = b"rhythm%d" % next(self._numbers)
            self._names[text, types] = name
            self.pgconn.send_prepare(name, text, types)
        self.pgconn.send_query_prepared(name, values, formats, BINARY)
        return unprepared

    def _flush(self, answer_s: float) -> None:
        """Sends what is still here; the server may have to be read from before it takes more."""
        pgconn = self.pgconn
        if pgconn.flush():
            both = select.poll()
            both.register(pgconn.socket, select.POLLIN | select.POLLOUT)
            while pgconn.flush():
                if not both.poll(answer_s * 1000):
                    self._give_up(answer_s)
                pgconn.consume_input()

    def _answers(
        self, sent: Sent, answer_s: float, wanted: bool = True
    ) -> tuple[list[FetchedRows], PGresult | None]:
        """Reads the answers to statements that were sent together, and the first error among
        them.

        Rows that nobody wants are not read.
        """
        failed: PGresult | None = None
        answers = []
        for each, was_unprepared in zip(*sent, strict=True):
            done = True
            if was_unprepared:
                prepared = self._result(answer_s)
                done = prepared.status == ExecStatus.COMMAND_OK
                failed = failed or self._problem(prepared)
            if not done:
                del self._names[each.text, each.types]
            result = self._result(answer_s)
            failed = failed or self._problem(result)
            answers.append(self._read(result) if wanted and failed is None else NO_ROWS)
        self._end(answer_s)
        return answers, failed

    def _read_posted(self, answer_s: float) -> None:
        for sent in self.posted:
            _, failed = self._answers(sent, answer_s, wanted=False)
            if failed is not None:
                problem = errors.error_from_result(failed, "utf-8")
                log.debug("what nobody waited for has failed: %s", problem)
        self.posted = []

    @staticmethod
    def _problem(result: PGresult) -> PGresult | None:
        return result if result.status not in DONE else None

    def _read(self, result: PGresult) -> FetchedRows:
        if result.status != ExecStatus.TUPLES_OK:
            return NO_ROWS
        count = result.ntuples
        if not count:
            return FetchedRows([], _Columns(result))
        self._reader.set_pgresult(result)
        return FetchedRows(self._reader.load_rows(0, count, tuple), _Columns(result))

    def _result(self, answer_s: float) -> PGresult:
        """Returns the result of the next statement."""
        result = self._next(answer_s)
        if result is None:  # the end of the results of the one before
            result = self._next(answer_s)
        if result is None:
            message = self.pgconn.get_error_message() or "the connection is lost"
            raise psycopg.OperationalError(message)
        return result

    def _end(self, answer_s: float) -> None:
        """Reads the server's word that the exchange is over."""
        while self._result(answer_s).status != ExecStatus.PIPELINE_SYNC:
            pass

    def _next(self, answer_s: float) -> PGresult | None:
        pgconn = self.pgconn
        while pgconn.is_busy():
            if not self._poll.poll(answer_s * 1000):
                self._give_up(answer_s)
            pgconn.consume_input()
        return pgconn.get_result()

    def _give_up(self, answer_s: float) -> None:
        self.pgconn.finish()
        raise psycopg.OperationalError(f"the server has not answered for {answer_s:g} s")


class _Columns:
    """The names of a result's columns, as a cursor's description has them; read when asked for."""

    def __init__(self, result: PGresult) -> None:
        self._result = result

    def __iter__(self) -> Any:
        for number in range(self._result.nfields):
            yield ((self._result.fname(number) or b"").decode(),)
