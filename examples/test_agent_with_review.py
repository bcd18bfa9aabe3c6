"""The agent with a model that says what the test wants."""

from agent_with_review import agent

from rhythm.testing import Env


def test_dangerous_tool_runs_when_a_person_allows_it(env: Env) -> None:
    run = env.start(agent, "Is the disk full?")
    assert env.order == ["ask_model", "disk_usage", "ask_model"]
    env.decide(run, "approve", by="ann")
    answer = "It was 97 % full. All *.tmp are deleted."
    assert run.result() == {"answer": answer, "tokens": 360}


def test_model_hears_why_a_person_says_no(env: Env) -> None:
    run = env.start(agent, "Is the disk full?")
    env.decide(run, "reject", by="ann", comment="not today")
    assert "A person said no (rejected): not today" in run.result()["answer"]
    assert "delete_files" not in env.order


def test_nobody_who_answers_within_an_hour_is_a_no(env: Env) -> None:
    assert "(expired)" in env.run(agent, "Is the disk full?")["answer"]


def test_agent_stops_at_its_budget(env: Env) -> None:
    asks = {"tool": "disk_usage", "arguments": {"disk": "/"}, "tokens": 100}
    model = env.task("ask_model").returns(asks)
    assert env.run(agent, "loop", budget=500) == {"answer": None, "tokens": 500}
    assert model.called == 5


def test_tool_that_does_not_exist_is_told_to_the_model(env: Env) -> None:
    env.task("ask_model").returns({"tool": "fly", "arguments": {}, "tokens": 1}).runs()
    assert "There is no tool fly" in str(env.run(agent, "fly")["answer"])
