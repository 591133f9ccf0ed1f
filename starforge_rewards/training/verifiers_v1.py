"""verifiers 0.4: a judge plugin, `id = "starforge-rewards"` in `[[env.taskset.task.judges]]`.

verifiers makes a new judge for each rollout, so the reward itself is kept for the process. A failed
judgement is raised: verifiers marks the trace as not ok, and trainers leave it out of its group.
"""

from collections.abc import Mapping
from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found]

from starforge_rewards.errors import InputError, StarforgeError
from starforge_rewards.training.by_reference import reward_by
from starforge_rewards.training.calls import COLUMNS, beside, item_of, known
from starforge_rewards.training.environment import Value
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.turns import unwrapped


class NotScored(StarforgeError):
    """A rollout has no score; the message says why."""


class RubricJudgeConfig(vf.JudgeConfig):  # type: ignore[misc]
    """One of `rubric` and `environment` must be given."""

    id: vf.ID = "starforge-rewards"
    rubric: str = ""
    """`owner/name` or `owner/name@version`."""
    environment: str = ""
    """A shipped name or a folder; its verifiers make the reward."""
    judge: str | None = None
    """A shipped name, a file or `pool:NAME`; the endpoint keys of verifiers are not used."""
    value: Value = "total"
    """With `rubric`: the number on its own scale, or `normalized`, in [0, 1]."""
    run_id: str | None = None
    """Of the run that all workers are part of."""
    reference_field: str = "reference"
    """The field of the task's data that holds the right answer, where there is one."""


class RubricJudge(vf.Judge[dict[str, float], RubricJudgeConfig]):  # type: ignore[misc]
    """Scores a trace by a rubric of ours."""

    async def score(self, task: vf.TaskData, trace: vf.Trace) -> float:
        """The reward; each criterion is a metric beside it.

        Raises:
            InputError: the configuration or the task is refused.
            NotScored: the judge gave no score.
        """
        said = self.config
        if said.prompt is not None:
            raise InputError("the rubric's own words are asked: leave it out", field="prompt")
        reward = reward_by(
            said.rubric, said.environment, said.judge, value=said.value, run_id=said.run_id
        )
        (found,) = await reward.ascore([_item(task, trace, said.reference_field)])
        self._record(trace, reward, found)
        if found.value is None:
            raise NotScored(f"no score from the rubric ({found.cause}: {found.detail})")
        return found.value

    def _record(self, trace: vf.Trace, reward: RubricReward, found: Reward) -> None:
        numbers = known(beside(found, list(found.criteria)))
        for name, number in numbers.items():
            trace.record_metric(f"{self.reward_name}/{name.removeprefix('sf_')}", number)
        trace.record_judge_call(
            name=self.reward_name,
            request={"rubrics": reward.pinned, "run": reward.run_id},
            response=vf.JudgeResponse(text=found.detail, parsed=numbers),
        )


def _item(task: vf.TaskData, trace: vf.Trace, reference_field: str) -> Item:
    """The rollout of a trace: the response begins with what the policy first sampled."""
    row: Mapping[str, Any] = {key: getattr(task, key, None) for key in COLUMNS}
    branches = trace.branches
    nodes = branches[-1].nodes if branches else []
    first = next((at for at, node in enumerate(nodes) if node.sampled), len(nodes))
    prompt = [node.message for node in nodes[:first]] or task.prompt or ""
    response: Any = [node.message for node in nodes[first:]]
    if trace.root_reply is not None:  # the whole agent's answer, whoever spoke last
        response = trace.root_reply
    reference = getattr(task, reference_field, None)
    return unwrapped(item_of(prompt, response, row, reference))


__all__ = ["NotScored", "RubricJudge", "RubricJudgeConfig"]
