"""Which rollouts belong together: by what they say, never by where they stand in a batch."""

import hashlib
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from pydantic_core import to_json

from starforge_rewards.conversation import Content
from starforge_rewards.training.reward import Item, Reward


class Unique(NamedTuple):
    """A batch without its repetitions."""

    items: list[Item]
    places: list[int]
    """For each rollout of the batch, which of `items` it is."""

    def scattered(self, rewards: Sequence[Reward]) -> list[Reward]:
        """One reward for each rollout of the batch; what was judged once cost its first alone."""
        given = set[int]()
        scattered = []
        for place in self.places:
            reward = rewards[place]
            if place in given:
                reward = reward.model_copy(
                    update={"origins": dict.fromkeys(reward.origins, "cached")}
                )
            given.add(place)
            scattered.append(reward)
        return scattered


def unique(items: Sequence[Item], *, by_id: bool = False) -> Unique:
    """Identical completions of identical tasks are judged once; `by_id`: only of one row."""
    first: dict[tuple[Hashable, ...], int] = {}
    kept: list[Item] = []
    places = []
    for item in items:
        key = (item.row.id if by_id else "", *_said(item))
        if key not in first:
            first[key] = len(kept)
            kept.append(item)
        places.append(first[key])
    return Unique(kept, places)


def prompt_key(prompt: Content) -> str:
    """Equal for rollouts of one prompt: a group, however the trainer laid it out."""
    if isinstance(prompt, str):
        return hashlib.sha256(prompt.encode()).hexdigest()
    turns = "\n".join(message.model_dump_json() for message in prompt)
    return hashlib.sha256(b"messages\n" + turns.encode()).hexdigest()


def _said(item: Item) -> tuple[Hashable, ...]:
    """All that a verifier may look at, but for the id."""
    row = item.row
    rubric = to_json(row.rubric) if row.rubric else b""
    about = to_json(row.metadata) if row.metadata else b""
    return row.prompt, item.response, row.reference, row.context, row.expect, rubric, about
