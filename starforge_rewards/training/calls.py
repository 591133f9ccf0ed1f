"""What the adapters share: rollouts out of what a trainer hands over, and one reward in a process.

Of the numbers that are logged beside a reward, one that nobody gave is NaN, never 0.
"""

import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from starforge_rewards.conversation import Content, Message
from starforge_rewards.errors import InputError
from starforge_rewards.training.dataset import TaskRow
from starforge_rewards.training.grouping import prompt_key
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward

COLUMNS = ("id", "reference", "context", "metadata", "rubric", "expect")
"""What a trainer's row may say of a task, by the names of a `TaskRow`; all else is passed over."""
_ROLES = {"developer": "system", "function": "tool", "model": "assistant", "human": "user"}
_TURNS = TypeAdapter(tuple[Message, ...])
_rewards: dict[tuple[str | None, ...], RubricReward] = {}
_making = threading.Lock()  # two threads that come first make one reward


def reward_of(
    environment: str | RubricReward, judge: str | None = None, run_id: str | None = None
) -> RubricReward:
    """This process's reward for an environment: made, and so pinned, at the first call.

    Raises:
        InputError: the environment is refused.
        NotFound: there is none, or it names something that is not there.
    """
    if isinstance(environment, RubricReward):
        return environment
    key = ("made", str(environment), judge, run_id)
    with _making:
        if key not in _rewards:
            _rewards[key] = RubricReward(environment, judge=judge, run_id=run_id)
        return _rewards[key]


class Carrier:
    """Holds a reward that is pickled with it; all copies that come to a process share one."""

    def __init__(self, reward: RubricReward) -> None:
        self.reward = reward
        self.__name__ = reward.__name__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        reward: RubricReward = state["reward"]
        key = ("came", reward.run_id, reward.__name__, reward.judge.model_dump_json())
        with _making:
            self.reward = _rewards.setdefault(key, reward)


def item_of(
    prompt: object,
    response: object,
    row: Mapping[str, Any] | None = None,
    reference: object = None,
) -> Item:
    """A rollout to score.

    Args:
        prompt: a text or turns, as OpenAI's chat format has them.
        response: likewise.
        row: what the trainer's dataset says of the task; of it, `COLUMNS` are read.
        reference: the right answer, where the row has none; what is no text is shown as JSON.

    Raises:
        InputError: a field is refused.
    """
    held = {} if row is None else {key: row[key] for key in COLUMNS if row.get(key) is not None}
    task: dict[str, Any] = {key: _plain(value) for key, value in held.items()}
    if "reference" not in task and reference is not None:
        task["reference"] = _plain(reference)
    for key in ("reference", "context", "id"):
        if not isinstance(task.get(key, ""), str):
            task[key] = json.dumps(task[key], ensure_ascii=False)
    for key in ("rubric", "metadata"):  # as text where a table's column cannot hold it
        if isinstance(given := task.get(key), str) and given.lstrip().startswith("{"):
            task[key] = _parsed(given, key)
    task["prompt"] = content(prompt, "prompt")
    said = content(response, "response")
    if "rubric" in task or "metadata" in task:
        return Item(_row(task), said)
    return Item(_known_row(tuple(task.items())), said)


def items_of(
    prompts: Sequence[object],
    responses: Sequence[object],
    columns: Mapping[str, Any],
    references: Sequence[object] | None = None,
) -> list[Item]:
    """The rollouts of a batch whose `columns` are lists, one value for each rollout.

    Raises:
        InputError: the lists are not equally long, or a field is refused.
    """
    count = len(responses)
    held = {key: _listed(key, columns[key]) for key in COLUMNS if columns.get(key) is not None}
    for name, values in {"prompt": prompts, **held}.items():
        if len(values) != count:
            raise InputError(f"{len(values)} values for {count} completions", field=name)
    rights = references if references is not None else [None] * count
    return [
        item_of(prompt, response, {key: values[at] for key, values in held.items()}, right)
        for at, (prompt, response, right) in enumerate(zip(prompts, responses, rights, strict=True))
    ]


def _listed(name: str, values: Any) -> list[Any]:
    """A column as a list, in whatever a trainer hands it over."""
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        said = f"must hold one value for each completion, not {type(values).__name__}"
        raise InputError(said, field=name)
    return list(values)


class Halves(NamedTuple):
    """A conversation, parted where the policy first spoke."""

    prompt: Content
    response: Content


def parted(turns: object) -> Halves:
    """The prompt is what comes before the first turn of the assistant's; the response, the rest."""
    said = content(turns, "messages")
    if isinstance(said, str):
        raise InputError("must be turns, not a text", field="messages")
    at = next((at for at, one in enumerate(said) if one.role == "assistant"), len(said))
    return Halves(said[:at], said[at:])


def content(given: object, field: str) -> Content:
    """A text as it is, or turns of OpenAI's chat format as ours.

    Raises:
        InputError: it is neither.
    """
    if isinstance(given, str):
        return given
    if isinstance(given, tuple) and all(isinstance(turn, Message) for turn in given):
        return given
    turns: object = [given] if isinstance(given, Mapping) else _plain(given)
    if not isinstance(turns, list):
        raise InputError("must be a text or a list of turns", field=field)
    said = [_turn(turn, f"{field}[{at}]") for at, turn in enumerate(turns)]
    try:
        return _TURNS.validate_python(said)
    except ValidationError as error:
        refused = InputError.of(error, data=said)
        raise InputError(refused.problem, field=f"{field}{refused.field or ''}") from None


def value_of(reward: Reward) -> float:
    """The number of a reward that must have one.

    Raises:
        RewardsFailing: it has none.
    """
    if reward.value is None:
        raise RewardsFailing(f"a rollout has no score ({reward.cause}: {reward.detail})")
    return reward.value


def beside(reward: Reward, criteria: Sequence[str] = ()) -> dict[str, float]:
    """Numbers to log: the same keys for every rollout, whatever became of it.

    `sf_valid` is 1 for a number that a verifier gave, and 0 for a stand-in; NaN is not known.
    """
    return {
        "sf_valid": float(reward.valid),
        "sf_total": _or_nan(reward.total),
        "sf_normalized": _or_nan(reward.normalized),
        "sf_uncertainty": _or_nan(reward.uncertainty),
    } | {f"sf_criterion/{name}": reward.criteria.get(name, math.nan) for name in criteria}


def known(numbers: Mapping[str, float]) -> dict[str, float]:
    """Without those that are not known, for a reader that takes no NaN."""
    return {name: value for name, value in numbers.items() if not math.isnan(value)}


def _forked() -> None:
    global _making  # a thread that is not here may hold it
    _making = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _row(task: dict[str, Any]) -> TaskRow:
    task.setdefault("id", prompt_key(task["prompt"])[:16])
    try:
        return TaskRow.model_validate(task)
    except ValidationError as error:
        raise InputError.of(error, data=task) from None


@lru_cache(maxsize=4096)
def _known_row(task: tuple[tuple[str, Any], ...]) -> TaskRow:
    """A row of texts and turns: the rollouts of a group share one."""
    return _row(dict(task))


def _turn(given: object, field: str) -> dict[str, Any]:
    turn = _plain(given)
    if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
        raise InputError("is no turn: it has no role", field=field)
    said: dict[str, Any] = {
        "role": _ROLES.get(turn["role"], turn["role"]),
        "content": _text(turn.get("content")),
    }
    if calls := turn.get("tool_calls"):
        said["tool_calls"] = [_call(call) for call in calls]
    return said


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function", call)
    arguments = function.get("arguments", "{}")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {"name": function.get("name", ""), "arguments": arguments}


def _text(said: object) -> str:
    """The text of a turn; of one in parts, that of all its parts."""
    if isinstance(said, list):
        return "\n".join(_text(part) for part in said)
    if isinstance(said, dict):
        return str(said.get("text", ""))
    return said if isinstance(said, str) else ""


def _parsed(text: str, field: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", field=field) from None


def _plain(value: Any) -> Any:
    """Python's own values, for arrays and models; a null is a column that a row has not."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
