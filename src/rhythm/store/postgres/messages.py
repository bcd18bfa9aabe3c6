"""Signals and events on PostgreSQL."""

from __future__ import annotations

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
from rhythm.store.postgres.connection import UndoneError
from rhythm.store.postgres.exchange import Exchange
from rhythm.store.postgres.flush import mail_row
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.provenance import provenance_of, sender_of
from rhythm.store.rows import fields, records, records_with
from rhythm.store.verdicts import received


class PostgresMessages(PostgresRole, MessageStore):
    @transaction
    def signal(self, signal: NewSignal, limit: int, actor: Actor | None = None) -> Delivery:
        """Puts a signal into a mailbox, as the interface says.

        The wake comes first: it locks the mailbox. It is undone if the signal is not delivered.
        """
        id = signal.execution_id
        now = self.rows.wake_live([id])
        status, known, waiting = self.db.all("mailbox", id=id, signal=signal.id)[0]
        if (delivery := received(status, known, waiting, limit)) != "sent":
            raise UndoneError(delivery)
        if not self.db.batch("insert_signals", [mail_row(signal)], most=limit, now=now):
            raise UndoneError("duplicate")
        self.rows.contribute([(id, provenance_of(actor).contributors)], now)
        self.auditor.record(actor, sending_acts((), [signal]), now)
        return delivery

    @transaction
    def publish(self, event: NewEvent, actor: Actor | None = None) -> Publication:
        exchange = Exchange(self.rows, [event])
        self.rows.lock(exchange.waiting())
        now = self.db.now()
        if not exchange.publish([event], {event.id: sender_of(actor)}, now):
            raise UndoneError("duplicate")
        self.rows.contribute(exchange.contributions, now)
        self.auditor.record(actor, sending_acts([event], ()))
        return "published"

    @autocommit
    def mail(self, ids: Sequence[str]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        for mail, id in records_with(Mail, self.db.all("mail", ids=list(ids)), "execution_id"):
            boxes.setdefault(id, []).append(mail)
        return boxes

    @autocommit
    def first_mail(self, asked: Sequence[MailAsked]) -> dict[str, list[Mail]]:
        boxes: dict[str, list[Mail]] = {}
        rows = self.db.batch("first_mail", [fields(each) for each in asked])
        for mail, id in records_with(Mail, rows, "execution_id"):
            boxes.setdefault(id, []).append(mail)
        return boxes

    @autocommit
    def mailed(self, id: str) -> list[Mail]:
        return records(Mail, self.db.all("mailed", id=id))

    @autocommit
    def waits(self, id: str) -> list[NewWait]:
        return records(NewWait, self.db.all("waits", id=id))
