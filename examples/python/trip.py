r"""A saga: what was booked is cancelled, in reverse order, if a later booking fails.

rhythm run examples/python/trip.py -i customer=ada \
    -i 'wanted:={"flight": "LH1", "car": "Rome", "hotel": "full"}'
"""

import rhythm


class SoldOut(Exception):
    pass


@rhythm.task(retries=10, give_up_on=SoldOut)
async def book(what: str, customer: str, wish: str) -> None:
    if wish == "full":
        raise SoldOut(f"this {what} is fully booked")


@rhythm.task(retries=10)
async def cancel(what: str, customer: str) -> None:
    print(f"{what} of {customer} cancelled")


@rhythm.workflow
async def trip(customer: str, wanted: dict[str, str]) -> list[str]:
    begun: list[str] = []
    try:
        for what, wish in wanted.items():
            begun.append(what)
            await book(what, customer, wish)
    except SoldOut:
        for what in reversed(begun):
            await cancel(what, customer)
        raise
    return begun
