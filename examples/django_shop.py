"""A Django view that starts a workflow in its transaction: the order and its workflow are there
together, or neither is.

    pip install rhythm django
    python examples/django_shop.py migrate
    python examples/django_shop.py runserver        # one terminal
    rhythm worker --app examples/django_shop.py:app   # another one
    curl -X POST localhost:8000/orders -d 'item=book&amount=30'

It is all in one file to be read at a glance; in a project, these are settings.py, models.py,
workflows.py, views.py and urls.py.
"""

from __future__ import annotations

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import connection, models, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path

import rhythm

FILE = os.environ.get("SHOP_DB", "shop.db")
LARGEST_AMOUNT = 1000

if not settings.configured:
    settings.configure(
        DEBUG=True,
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["localhost", "testserver"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": FILE,
                # a transaction that reads first could not write after another one has written
                "OPTIONS": {"transaction_mode": "IMMEDIATE"},
            }
        },
    )
    django.setup()


class Order(models.Model):
    item = models.TextField()
    amount = models.IntegerField()

    class Meta:
        app_label = "shop"


@rhythm.task(retries=3)
async def charge(order: int, amount: int) -> str:
    return f"charged {amount} for order {order}"


@rhythm.workflow
async def fulfil(order: int, amount: int) -> str:
    return await charge(order, amount)


app = rhythm.Rhythm(f"sqlite:///{FILE}")


@transaction.atomic
def place_order(request: HttpRequest) -> JsonResponse:
    order = Order.objects.create(item=request.POST["item"], amount=int(request.POST["amount"]))
    app.start_workflow(
        fulfil,
        {"order": order.id, "amount": order.amount},
        id=f"order-{order.id}",
        connection=connection,
    )
    if order.amount > LARGEST_AMOUNT:  # neither the order nor its workflow has ever been there
        transaction.set_rollback(True)
        return JsonResponse({"error": f"an order has at most {LARGEST_AMOUNT}"}, status=422)
    return JsonResponse({"order": order.id}, status=201)


urlpatterns = [path("orders", place_order)]


def make_tables() -> None:
    """Stands for `manage.py migrate`: one file has no place for migrations."""
    with connection.schema_editor() as editor:
        editor.create_model(Order)


if __name__ == "__main__":
    make_tables() if sys.argv[1:] == ["migrate"] else execute_from_command_line(sys.argv)
