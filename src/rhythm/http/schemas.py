"""Schemas of requests and answers, for the OpenAPI document: an object has the fields of its
record.

Requests are checked against their schema. Answers are not, since they are made from the records
themselves.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from rhythm.record import Record

Model = type[BaseModel]
Json = Any


class Body(BaseModel):
    """What a request's body may have: nothing else, and nothing that is almost of the right
    type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """An error, as in RFC 9457."""

    type: str
    title: str
    status: int
    code: str = Field(description="Names the error for programs. It never changes.")
    detail: str


@cache
def form_of(record: type[Record], name: str = "", leave_out: tuple[str, ...] = ()) -> Model:
    """Returns the schema of a record, without the fields in `leave_out`."""
    hints = {
        field: _form(hint)
        for field, hint in get_type_hints(record).items()
        if field in record._fields and field not in leave_out
    }
    fields: dict[str, Any] = {field: (hint, ...) for field, hint in hints.items()}
    return create_model(name or record.__name__, __doc__=record.__doc__, **fields)


@cache
def page_of(item: Model, **more: Any) -> Model:
    """Returns the schema of a page of these items, and of fields that it has besides."""
    items: Any = (list[item], ...)  # type: ignore[valid-type]  # a model that is made here
    besides: dict[str, Any] = {name: (hint, ...) for name, hint in more.items()}
    return create_model(
        f"{item.__name__}Page",
        __doc__="One page of a list. Send its `cursor` to get the next page; null: no more pages.",
        items=items,
        cursor=(str | None, ...),
        **besides,
    )


def object_of(name: str, doc: str, /, like: type[Record] | None = None, **fields: Any) -> Model:
    """Returns the schema of an object with these fields, after those of the record `like`."""
    wanted: dict[str, Any] = {field: (hint, ...) for field, hint in fields.items()}
    return create_model(
        name, __doc__=doc, __base__=form_of(cast(Any, like)) if like else None, **wanted
    )


def _form(hint: Any) -> Any:
    """Returns a type in which every record is replaced by its schema."""
    if isinstance(hint, type) and issubclass(hint, Record):
        return form_of(cast(Any, hint))
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, UnionType):
        return typing.Union[tuple(_form(one) for one in args)]  # noqa: UP007  # made at run time
    if origin is tuple:
        return list[_form(args[0])]  # type: ignore[misc]  # a type that is made here
    if origin in (list, Mapping, dict):
        return list[_form(args[0])] if origin is list else dict[str, Any]  # type: ignore[misc]
    return hint
