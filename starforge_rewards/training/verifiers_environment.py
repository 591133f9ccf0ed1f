"""verifiers 0.4: an environment of ours as a taskset, `--env.taskset.id starforge-rewards`.

Its rows are the tasks, and the rubric that it names by reference is the judge of each.
"""

from collections.abc import Iterator
from typing import Any, Literal

import verifiers.v1 as vf  # type: ignore[import-not-found]

from starforge_rewards.conversation import Message
from starforge_rewards.errors import InputError
from starforge_rewards.training.dataset import Split, TaskRow, read_tasks
from starforge_rewards.training.environment import load_environment
from starforge_rewards.training.verifiers_v1 import RubricJudgeConfig


class RubricTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which rows, and who judges."""

    id: vf.ID = "starforge-rewards"
    environment: str = "support-desk"
    """A shipped name or a folder."""
    split: Split = "train"
    judge: str | None = None
    """In place of the environment's: a shipped name, a file or `pool:NAME`."""
    run_id: str | None = None


class RubricTaskData(vf.TaskData):  # type: ignore[misc]
    """A row; what stands here beside the prompt is for the judge, not for the policy."""

    reference: str | None = None
    context: str | None = None
    metadata: dict[str, Any] = {}
    rubric: dict[str, Any] | str | None = None
    expect: Literal["refuse", "comply"] | None = None


class RubricTask(vf.Task[RubricTaskData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """One row."""


class RubricTaskset(vf.Taskset[RubricTask, RubricTasksetConfig]):  # type: ignore[misc]
    """An environment's rows of one split."""

    def load(self) -> Iterator[RubricTask]:
        """The tasks, in the order of the rows.

        Raises:
            InputError: the environment or a row is refused, or another judge has its name.
            NotFound: there is no such environment.
        """
        said, task = self.config, self.config.task
        ours = RubricJudgeConfig(
            name=said.environment.rstrip("/").rpartition("/")[2],
            environment=said.environment,
            judge=said.judge,
            run_id=said.run_id,
        )
        if any(judge.name == ours.name for judge in task.judges):
            raise InputError(f"{ours.name!r} is the environment's own judge", field="judges")
        config = task.model_copy(update={"judges": [ours, *task.judges]})
        for row in read_tasks(load_environment(said.environment), said.split):
            yield RubricTask(_data(row), config)


def _data(row: TaskRow) -> RubricTaskData:
    said = row.model_dump(mode="json", exclude={"prompt", "split"})
    if isinstance(row.prompt, str):
        return RubricTaskData(prompt=row.prompt, **said)
    first, *others = row.prompt
    system = first.content if first.role == "system" else None
    turns = others if first.role == "system" else row.prompt
    return RubricTaskData(prompt=[_turn(turn) for turn in turns], system_prompt=system, **said)


def _turn(message: Message) -> dict[str, Any]:
    if message.tool_calls or message.role == "tool":
        raise InputError("a prompt with tool calls cannot be given to verifiers", field="prompt")
    return {"role": message.role, "content": message.content}


__all__ = ["RubricTask", "RubricTaskData", "RubricTaskset", "RubricTasksetConfig"]
