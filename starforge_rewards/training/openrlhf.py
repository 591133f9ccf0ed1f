"""OpenRLHF: the `reward_func` of a file for `--reward.remote_url`, and how its texts are read.

OpenRLHF passes over what a reward function raises and goes on with no reward; where it then needs
one it stops. So a failure is logged here too, with its cause.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from starforge_rewards.errors import InputError, StarforgeError
from starforge_rewards.training.calls import Carrier, beside, item_of, reward_of, value_of
from starforge_rewards.training.reward import Item, Reward
from starforge_rewards.training.rubric_reward import RubricReward

Labels = Literal["reference", "row"]
"""What a label is: the reference, or a JSON object of a task's columns, with the plain `prompt`."""
_log = logging.getLogger(__name__)
_BEGIN = re.compile(r"(?:<s>|<bos>|<pad>|<\|[^<>|\s]{1,40}\|>|\s)*")
"""What a tokenizer puts before everything."""
_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>")
_ENDS = ("</s>", "<eos>", "<pad>", "<end_of_turn>", "[PAD]")
"""What a chat template or a tokenizer puts after a turn, besides `<|...|>`."""


class RewardFunc(Carrier):
    """A sync function of lists, for threads: as OpenRLHF calls it."""

    def __init__(self, reward: RubricReward, labels: Labels) -> None:
        super().__init__(reward)
        self._labels: Labels = labels

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object]
    ) -> dict[str, Any]:
        """Rewards, scores and logged numbers, one of each for each query.

        Raises:
            InputError: a query does not hold its prompt, or a label is refused.
            RewardsFailing: a query has no score, and nothing may stand in for it.
        """
        try:
            items = items_in(queries, prompts, labels, self._labels)
            return answer(self.reward.numbers(items), self.reward.criteria)
        except StarforgeError as error:
            _log.error("no reward: %s", error)  # OpenRLHF itself says so at its level INFO only
            raise


def reward_func_of(
    environment: str | RubricReward,
    judge: str | None = None,
    *,
    run_id: str | None = None,
    labels: Labels = "reference",
) -> RewardFunc:
    """What a file sets its `reward_func` to; every engine that loads the file has its own."""
    return RewardFunc(reward_of(environment, judge, run_id), labels)


def items_in(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object], kind: Labels
) -> list[Item]:
    """The rollouts of a call.

    Raises:
        InputError: the lists differ in length, a query does not hold its prompt, or a label is
            refused.
    """
    if not len(queries) == len(prompts) == len(labels):
        said = f"{len(queries)} queries, {len(prompts)} prompts, {len(labels)} labels"
        raise InputError(f"must be equally long: {said}", field="query")
    rows = zip(queries, prompts, labels, strict=True)
    return [_item(query, prompt, label, kind) for query, prompt, label in rows]


def answer(rewards: Sequence[Reward], criteria: Sequence[str]) -> dict[str, Any]:
    """What OpenRLHF reads: lists, one value for each query."""
    values = [value_of(one) for one in rewards]
    logged = [beside(one, criteria) for one in rewards]
    names = logged[0] if logged else {}
    return {
        "rewards": values,
        "scores": values,
        "extra_logs": {name: [one[name] for one in logged] for name in names},
    }


def response_in(query: str, prompt: str) -> str:
    """What the policy wrote: a query without its prompt and without the end of the turn.

    Raises:
        InputError: the query does not hold the prompt, as where the prompt was cut; or there is
            none.
    """
    if not prompt:
        raise InputError("is empty: a rollout answers something", field="prompts")
    before, found, after = query.partition(prompt)
    if not found or not _BEGIN.fullmatch(before):
        raise InputError("does not begin with its prompt: was the prompt cut?", field="query")
    return _without_end(after)


def row_of(label: object) -> Mapping[str, Any]:
    """A label that is a task's columns.

    Raises:
        InputError: it is no JSON object.
    """
    try:
        row = json.loads(label) if isinstance(label, str) else label
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", field="labels") from None
    if not isinstance(row, Mapping):
        raise InputError("must be a JSON object of a task's columns", field="labels")
    return row


def _without_end(text: str) -> str:
    bare = text.rstrip()
    while True:
        at = bare.rfind("<|") if bare.endswith("|>") else -1
        if at >= 0 and _TOKEN.fullmatch(bare, at):
            token = bare[at:]
        else:
            token = next((one for one in _ENDS if bare.endswith(one)), "")
        if not token:
            return text
        text = bare = bare[: -len(token)].rstrip()


def _item(query: str, prompt: str, label: object, kind: Labels) -> Item:
    response = response_in(query, prompt)
    if kind == "reference":
        return item_of(prompt, response, reference=label)
    row = row_of(label)
    return item_of(row.get("prompt", prompt), response, row)
