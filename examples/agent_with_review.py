"""An agent: a model asks for tools until it has an answer; a person must allow the dangerous ones.

Shows: a loop whose length nobody knows, tasks by name, an approval inside it, a budget.
Run:   rhythm dev --app examples/agent_with_review.py
       rhythm start agent --id Q1 -i 'question=Is the disk full?'; rhythm approve Q1 --by ann
Test:  pytest examples/test_agent_with_review.py
"""

from typing import Any

import rhythm

SAFE = ["disk_usage"]
DANGEROUS = ["delete_files"]


@rhythm.task(retries=3, timeout="1m")
async def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stands in for a model, which would be given the messages and a list of the tools."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        return {"tool": "disk_usage", "arguments": {"disk": "/"}, "tokens": 120}
    if len(results) == 1:
        return {"tool": "delete_files", "arguments": {"pattern": "*.tmp"}, "tokens": 150}
    return {"answer": f"It was {results[0]}. {results[1]}.", "tokens": 90}


@rhythm.task
async def disk_usage(disk: str) -> str:
    return "97 % full"


@rhythm.task
async def delete_files(pattern: str) -> str:
    return f"All {pattern} are deleted"


@rhythm.workflow
async def agent(question: str, budget: int = 1000) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    tokens = 0
    while tokens < budget:
        reply = await ask_model(messages)
        tokens += reply["tokens"]
        if "answer" in reply:
            return {"answer": reply["answer"], "tokens": tokens}
        tool = reply["tool"]
        allowed = tool in SAFE
        result = f"There is no tool {tool}"
        if tool in DANGEROUS:
            review = await rhythm.approval(
                role="operator", reason=f"May I call {tool}?", data=reply, timeout="1h"
            )
            allowed = review["decision"] == "approved"
            result = f"A person said no ({review['decision']}): {review['comment'] or ''}"
        if allowed:
            result = await rhythm.run_task(tool, reply["arguments"])
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "tool", "content": result})
    return {"answer": None, "tokens": tokens}
