"""A mail every month until somebody cancels; then a last one.

rhythm start examples/python/newsletter.py --id ada@example.com -i email=ada@example.com
rhythm cancel ada@example.com
"""

import rhythm


@rhythm.task(timeout="10s")
async def send_email(to: str, message: str, count: int) -> None:
    print(f"mail {count} to {to}: {message}")


@rhythm.workflow
async def newsletter(email: str) -> None:
    count = 0
    message = "Welcome!"
    try:
        while True:
            count += 1
            rhythm.set_attribute("sent", count)
            await send_email(email, message, count)
            message = "Thank you for staying with us!"
            await rhythm.sleep("30d")
    finally:
        await send_email(email, "Sorry to see you go", count)
