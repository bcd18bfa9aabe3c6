"""Signals and events on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rhythm.store.access import Actor
from rhythm.store.acts import sending_acts
from rhythm.store.interfaces.messages import (
    Mail,
    MailAsked,
    MessageStore,
    NewEvent,
    NewSignal,
    NewWait,
)
from rhythm.store.lifecycle import Delivery, Publication
from rhythm.store.provenance import sender_of
from rhythm.store.rows import fields, records, records_with
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.exchange import SqliteExchange
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.session import SQL, SqliteSession
from rhythm.store.verdicts import received


class SqliteMessages(SqliteRole, MessageStore):
    def __init__(
        self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor, exchange: SqliteExchange
    ) -> None:
        super().__init__(db, rows, auditor)
        self.exchange = exchange

    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        with self.db.transaction():
            found, id = self.rows.find(signal.execution_id), signal.execution_id
            known = bool(self.db.one("signal_known", signal.id))
            waiting = self.db.one("unconsumed", id)[0]
            if (
                delivery := received(found.status if found else None, known, waiting, limit)
            ) != "sent":
                return delivery
            self.exchange.deliver(signal, sender_of(actor), self.db.clock())
            self.auditor.record(actor, sending_acts((), [signal]), self.db.clock())
            return delivery

    def publish(self, event: NewEvent, actor: Actor | None = None) -> Publication:
        with self.db.transaction():
            if not self.exchange.publish(event, sender_of(actor), self.db.clock()):
                return "duplicate"
            self.auditor.record(actor, sending_acts([event], ()), self.db.clock())
            return "published"

    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        for mail, id in records_with(
            Mail, self.db.all("mail", json.dumps(list(ids))), "execution_id"
        ):
            boxes.setdefault(id, []).append(mail)
        return boxes

    def first_mail(self, asked: Sequence[MailAsked]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        whole: dict[int, list[str]] = {}
        for each in asked:
            if each.name is None:
                whole.setdefault(each.limit, []).append(each.id)
        read = [
            self.db.all("first_mail", {"ids": json.dumps(ids), "limit": limit})
            for limit, ids in whole.items()
        ]
        read += [self.db.all("named_mail", fields(each)) for each in asked if each.name is not None]
        for rows in read:
            for mail, id in records_with(Mail, rows, "execution_id"):
                boxes.setdefault(id, []).append(mail)
        return boxes

    def mailed(self, id: str) -> list[Mail]:
        return records(Mail, self.db.read(SQL["mailed"], (id,)))

    def waits(self, id: str) -> list[NewWait]:
        return records(NewWait, self.db.read(SQL["waits"], (id,)))
