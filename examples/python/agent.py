"""An agent: the model asks for tools until it has an answer. Tools are tasks, called by name.

rhythm run examples/python/agent.py -i 'question=How is the weather here?'
"""

from typing import Any

import rhythm


@rhythm.task(timeout="30s")
async def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stands in for a model, which would be asked with the messages and a list of the tools."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        return {"tool": "get_location", "arguments": {"ip": "10.0.0.7"}}
    if len(results) == 1:
        return {"tool": "get_weather", "arguments": {"city": results[0]}}
    return {"answer": f"In {results[0]} it is {results[1]}."}


@rhythm.task(timeout="30s")
async def get_location(ip: str) -> str:
    return "Lisbon"


@rhythm.task(timeout="30s")
async def get_weather(city: str) -> str:
    return "sunny"


@rhythm.workflow
async def agent(question: str) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    while True:
        reply = await ask_model(messages)
        if "answer" in reply:
            return str(reply["answer"])
        result = await rhythm.run_task(reply["tool"], reply["arguments"])
        print(f"used {reply['tool']}")
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "tool", "content": result})
