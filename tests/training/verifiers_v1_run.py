"""verifiers 0.4 scores traces with our plugin; run in its own virtual environment.

Traces hold what the rows of the environment say in their metadata, and are scored as a rollout of
verifiers does it. `main` takes an environment folder, a judge file and the file to write.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found]
from verifiers.v1.configs.agent import AgentConfig  # type: ignore[import-not-found]
from verifiers.v1.graph import MessageNode  # type: ignore[import-not-found]
from verifiers.v1.trace import AgentInfo, Trace, TraceTask  # type: ignore[import-not-found]
from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage, UserMessage  # type: ignore[import-not-found]
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type  # type: ignore[import-not-found]


def trace_of(task: vf.Task, turns: list[Any]) -> Trace:
    """A trace as a rollout leaves it: the prompt's node, then what was sampled."""
    said = [UserMessage(content=task.data.prompt_text), *turns]
    nodes = [
        MessageNode(
            parent=at - 1 if at else None, message=one, sampled=isinstance(one, AssistantMessage)
        )
        for at, one in enumerate(said)
    ]
    about = TraceTask(type=type(task).__name__, data=task.data)
    return Trace(task=about, agent=AgentInfo(config=AgentConfig()), nodes=nodes)


async def scored(task: vf.Task, turns: list[Any]) -> dict[str, Any]:
    """As a rollout of verifiers does it, from scoring to `ok`."""
    trace = trace_of(task, turns)
    failed = False
    try:
        await task.score(trace)
    except vf.TaskError as error:
        trace.record_error(error)
        failed = True
    trace.ok = not failed and not trace.errors
    return {
        "ok": trace.ok,
        "reward": trace.reward,
        "rewards": {name: one and one.score for name, one in trace.rewards.items()},
        "metrics": trace.metrics,
        "errors": [f"{one.type}: {one.message}" for one in trace.errors],
        "calls": trace.info.get("judge_calls", []),
    }


def answer(text: str) -> AssistantMessage:
    return AssistantMessage(content=text)


class Data(vf.TaskData):  # type: ignore[misc]
    """A task of somebody else's."""

    answer: str


def task_with(judge: dict[str, Any]) -> vf.Task:
    judges = [{"id": "starforge-rewards", **judge}]
    config = vf.TaskConfig.model_validate({"judges": judges})
    return vf.Task[Data, vf.State, vf.TaskConfig](Data(prompt="q", answer="42"), config)


async def every(home: str, judge: str) -> dict[str, Any]:
    config = taskset_config_type("starforge-rewards").model_validate(
        {"id": "starforge-rewards", "environment": home, "judge": judge}
    )
    tasks = list(load_taskset(config))
    told: dict[str, Any] = {"prompts": [task.data.prompt_text for task in tasks]}
    for task in tasks:
        said = task.data.metadata["said"]
        told[task.data.id] = [await scored(task, [answer(text)]) for text in said]
    call = ToolCall(id="1", name="look", arguments='{"at": "4.1"}')
    turns = [
        AssistantMessage(content=None, tool_calls=[call]),
        ToolMessage(tool_call_id="1", content="a page"),
        answer("4"),
    ]
    told["tools"] = await scored(tasks[0], turns)
    named = {"rubric": "starforge/support-answer", "judge": judge}
    by_reference = {"value": "normalized", "weight": 2.0, "reference_field": "answer"}
    told["by reference"] = await scored(task_with(named | by_reference), [answer("3")])
    wrong = ({"judge": judge}, named | {"prompt": home + "/rows.jsonl"})
    told["refused"] = [(await scored(task_with(one), [answer("3")]))["errors"][0] for one in wrong]
    return told


def main(home: str, judge: str, out: str) -> None:
    Path(out).write_text(json.dumps(asyncio.run(every(home, judge))))
