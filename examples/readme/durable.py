import tasks  # noqa: F401  # registers them

import rhythm

with rhythm.Rhythm("sqlite:///orders.db", workflow_paths=["order.flow"]) as app, app.worker():
    order = app.start_workflow("order", {"id": "A17", "amount": 99.5}, id="A17")
    print(order.result())
