"""TRL: a reward function for its GRPO, RLOO and AsyncGRPO trainers, and what ends a failing run.

A rollout without a score is `None`, which TRL leaves out of its group's mean and deviation. That
holds while this is the only reward function: beside a second one, TRL takes `None` for 0.
"""

import json
import logging
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NoReturn

import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from starforge_rewards.conversation import Content
from starforge_rewards.errors import EngineFailed, InputError, Unavailable
from starforge_rewards.training.calls import Carrier, beside, items_of
from starforge_rewards.training.dataset import Split, TaskRow, read_tasks
from starforge_rewards.training.environment import Loaded, load_environment
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from starforge_rewards.training.turns import unwrapped

LogExtra = Callable[[str, list[Any]], None]
LogMetric = Callable[[str, float], None]
_log = logging.getLogger(__name__)


class TrlReward(Carrier):
    """`reward_funcs=[TrlReward("support-desk")]`; picklable, and async, so that TRL awaits it."""

    def __init__(
        self,
        environment: str | RubricReward,
        judge: str | None = None,
        *,
        run_id: str | None = None,
    ) -> None:
        """Resolves and pins what the environment names; asks no judge yet.

        Args:
            environment: a shipped name, a folder, or a reward that is made already.
            judge: in place of the environment's, such as `pool:team`.
            run_id: of the run that all ranks are part of; default: one for each reward.

        Raises:
            InputError: the environment, a rubric or a plugin is refused.
            NotFound: there is none, or it names nothing readable.
        """
        if not isinstance(environment, RubricReward):
            environment = RubricReward(environment, judge=judge, run_id=run_id)
        super().__init__(environment)
        self.broken: str | None = None
        """Why no rollout at all could be scored, the last time; see `StopWhereFailing`."""

    async def __call__(  # noqa: PLR0913 - TRL's signature
        self,
        *,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: object = None,
        trainer_state: object = None,
        log_extra: LogExtra | None = None,
        log_metric: LogMetric | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward for each completion; None: no score.

        Args:
            prompts: texts or turns; rollouts of one prompt are a group, wherever they stand.
            completions: likewise.
            completion_ids: passed over.
            trainer_state: TRL's; AsyncGRPO gives none, and there a failing run ends by raising.
            log_extra: a column of the completions' table.
            log_metric: a number of this batch.
            columns: of the dataset, a list each; `calls.COLUMNS` are read, the rest passed over.

        Raises:
            InputError: a column is refused, and no other process would be left waiting.
            RewardsFailing: AsyncGRPO alone: too many of the recent rollouts have no score.
        """
        del completion_ids
        found = await self._found(prompts, completions, columns)
        self._show(found, log_extra, log_metric)
        if trainer_state is None:
            self.reward.stop_where_failing()
        return [one.value for one in found]

    @property
    def failing(self) -> bool:
        """Whether the run should end: the judge is lost, or fails too often."""
        return self.broken is not None or self.reward.failing

    async def _found(
        self, prompts: Sequence[Any], completions: Sequence[Any], columns: dict[str, Any]
    ) -> list[Reward]:
        try:
            found = await self.reward.ascore(_items(prompts, completions, columns))
        except Exception as error:  # a border: what is raised here leaves other ranks waiting
            if _ranks() == 1 and not isinstance(error, EngineFailed | Unavailable):
                raise
            self.broken = f"{type(error).__name__}: {error}"
            _log.exception("no reward in this batch")
            return [Reward(value=None, cause="unreachable", detail=self.broken)] * len(completions)
        self.broken = None
        return found

    def _show(
        self, found: Sequence[Reward], log_extra: LogExtra | None, log_metric: LogMetric | None
    ) -> None:
        """The same columns in every batch: TRL joins them to one table."""
        rows = [beside(one, self.reward.criteria) for one in found]
        columns = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
        if log_extra is not None:
            for key, values in columns.items():
                log_extra(key, [None if math.isnan(value) else value for value in values])
            log_extra("sf_cause", [one.cause or "" for one in found])
        if log_metric is not None:
            for key, value in {**_means(columns), **self._rates()}.items():
                log_metric(f"rewards/{self.__name__}/{key}", value)

    def _rates(self) -> dict[str, float]:
        metrics = self.reward.metrics()
        answered = metrics.asked + metrics.cached
        return {
            "failure_rate": metrics.failure_rate,
            "tie_rate": metrics.tie_rate,
            "judge_wait_fraction": metrics.judge_wait_fraction,
            "cached_share": metrics.cached / answered if answered else 0.0,
            "queue_depth": float(metrics.queue_depth),
        }


class StopWhereFailing(TrainerCallback):  # type: ignore[misc]
    """Ends training on all ranks where one of them gets no scores any more, and says so."""

    def __init__(self, reward: TrlReward) -> None:
        self._reward = reward
        self._stopped = False

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> TrainerControl:
        """After each step; ranks agree, so that none is left waiting for another."""
        del state, kwargs
        if _on_any_rank(self._reward.failing, args.device):
            self._stopped = control.should_training_stop = True
        return control

    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: object,
    ) -> None:
        """Records how the run ended.

        Raises:
            RewardsFailing: it ended because scores failed; on all ranks.
        """
        del args, state, control, kwargs
        try:
            self._reward.reward.finish(failed=self._stopped)
        except Unavailable as error:
            _log.warning("the end of the run is not recorded: %s", error)
        if self._stopped:
            self._raise()

    def _raise(self) -> NoReturn:
        if self._reward.broken is not None:
            raise RewardsFailing(f"training has ended: {self._reward.broken}")
        self._reward.reward.stop_where_failing()
        raise RewardsFailing("training has ended: another rank got no scores; see its log")


def training_dataset(environment: str | Path | Loaded, split: Split = "train") -> Dataset:
    """An environment's rows as TRL takes them: `prompt` as turns, and what the judge may know.

    Raises:
        InputError: the environment or a row is refused, or the split has no rows.
        NotFound: there is no such environment.
    """
    named = environment
    loaded = named if isinstance(named, Loaded) else load_environment(named)
    rows = [_columns(row) for row in read_tasks(loaded, split)]
    used = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    return Dataset.from_list([{key: row[key] for key in used} for row in rows])


def _columns(row: TaskRow) -> dict[str, Any]:
    """All keys in every row: TRL takes a batch's columns from its first row."""
    said = row.model_dump(mode="json", exclude={"split", "prompt"})
    for key in ("metadata", "rubric"):  # as text: a table's column has the keys of all rows
        if isinstance(said[key], dict):
            said[key] = json.dumps(said[key], ensure_ascii=False)
    return {"prompt": _turns(row.prompt), **said}


def _turns(prompt: Content) -> list[dict[str, Any]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if any(message.tool_calls for message in prompt):
        raise InputError("tool calls before the policy's turn are not given to TRL", field="prompt")
    return [{"role": message.role, "content": message.content} for message in prompt]


def _items(
    prompts: Sequence[Any], completions: Sequence[Any], columns: dict[str, Any]
) -> list[Item]:
    return [unwrapped(item) for item in items_of(prompts, completions, columns)]


def _means(columns: dict[str, list[float]]) -> dict[str, float]:
    """Of each criterion, over the rollouts in which it was answered."""
    known = {
        key.removeprefix("sf_"): [value for value in values if not math.isnan(value)]
        for key, values in columns.items()
        if key.startswith("sf_criterion/")
    }
    return {key: fmean(values) for key, values in known.items() if values}


def _ranks() -> int:
    there = torch.distributed.is_available() and torch.distributed.is_initialized()
    return int(torch.distributed.get_world_size()) if there else 1


def _on_any_rank(said: bool, device: torch.device) -> bool:
    if _ranks() == 1:
        return said
    flag = torch.tensor(float(said), device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())
