"""An agent that asks a person before it goes on. `rhythm approvals` is the inbox.

rhythm start examples/python/inbox.py -i name=cleaner -i 'task=delete old files'
"""

import rhythm


@rhythm.workflow
async def inbox(name: str, task: str) -> str:
    answer = await rhythm.approval(
        role="operator",
        reason=f"Should I proceed with task: {task}?",
        data={"name": name, "task": task},
        timeout="1h",
    )
    if answer["decision"] != "approved":
        raise PermissionError(f"agent {name}: {answer['decision']}")
    return "agent successful"
