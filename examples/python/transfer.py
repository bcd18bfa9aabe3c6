r"""Money moves from one account to another, or comes back.

rhythm run examples/python/transfer.py -i source=85-150 -i target=43-812 \
    -i amount:=250 -i reference=12345
"""

import logging

import rhythm

log = logging.getLogger(__name__)


class InvalidAccount(Exception):
    pass


@rhythm.task(retries=5, timeout="5s", give_up_on=InvalidAccount)
async def withdraw(account: str, amount: int, reference: str) -> str:
    return f"W-{account}-{amount}-{reference}"


@rhythm.task(retries=5, timeout="5s", give_up_on=InvalidAccount)
async def deposit(account: str, amount: int, reference: str) -> str:
    if account == "closed":
        raise InvalidAccount(f"there is no account {account}")
    return f"D-{account}-{amount}-{reference}"


@rhythm.workflow
async def transfer(source: str, target: str, amount: int, reference: str) -> str:
    taken = await withdraw(source, amount, f"{reference}-withdrawal")
    try:
        given = await deposit(target, amount, f"{reference}-deposit")
    except rhythm.TaskFailed as failed:
        log.error("deposit failed: %s", failed)
        back = await deposit(source, amount, f"{reference}-refund")
        log.info("refunded: %s", back)
        raise
    return f"transfer complete: {taken}, {given}"
