"""The vLLM engine: reads a slot, generates text. The only file that imports vllm.

An engine lives only inside an actor's process: it watches no parent, and would outlive a driver.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from vllm import AsyncEngineArgs, SamplingParams
from vllm.inputs.engine import tokens_input
from vllm.outputs import RequestOutput
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError

from starforge_rewards.errors import EngineFailed
from starforge_rewards.question import Tokens

OPTIONS: dict[str, Any] = {
    "scheduling_policy": "priority",
    "enable_prefix_caching": True,
    "logprobs_mode": "raw_logprobs",
    "disable_log_stats": True,
}
"""What every engine of ours has, unless a judge's file says otherwise."""


@dataclass(frozen=True)
class SlotRead:
    """Raw probabilities at the forced position, one per label asked for; NaN where none came."""

    masses: tuple[float, ...]
    tokens: Tokens


@dataclass(frozen=True)
class Generation:
    """What the model wrote."""

    text: str
    finished: bool
    """False where it was cut at the token limit."""
    tokens: Tokens


class Engine:
    """One model on one engine; every method may be awaited many times at once."""

    def __init__(self, model: str, options: Mapping[str, Any]) -> None:
        unknown = sorted(options.keys() - {field.name for field in fields(AsyncEngineArgs)})
        if unknown:
            raise EngineFailed(f"unknown engine option: {', '.join(unknown)}")
        try:
            args = AsyncEngineArgs(model=model, **{**OPTIONS, **options})
            self._llm = AsyncLLM.from_engine_args(args)
        except Exception as error:  # the engine's start is not our code
            raise EngineFailed(f"vLLM could not start {model!r}: {error}") from error
        self.max_model_len = int(self._llm.vllm_config.model_config.max_model_len)
        self._ids = itertools.count()

    async def read_slot(self, prompt: list[int], labels: list[int], priority: int = 0) -> SlotRead:
        """The probabilities of the label tokens as the next token after the prompt.

        No request of ours ever sets `logprobs`: on the CPU that corrupts the rows beside it.
        """
        params = SamplingParams(
            max_tokens=1, temperature=0, logprob_token_ids=labels, detokenize=False
        )
        output = await self._finished(prompt, params, priority)
        found = (output.outputs[0].logprobs or [{}])[0]
        masses = tuple(math.exp(found[i].logprob) if i in found else math.nan for i in labels)
        return SlotRead(masses=masses, tokens=_tokens(output))

    async def generate(self, prompt: list[int], max_tokens: int, priority: int = 0) -> Generation:
        """Greedy text up to the first line break."""
        params = SamplingParams(max_tokens=max_tokens, temperature=0, stop=["\n"])
        output = await self._finished(prompt, params, priority)
        written = output.outputs[0]
        return Generation(
            text=written.text, finished=written.finish_reason != "length", tokens=_tokens(output)
        )

    async def forget(self) -> None:
        """Empty the prefix cache."""
        await self._llm.reset_prefix_cache()

    async def _finished(
        self, prompt: list[int], params: SamplingParams, priority: int
    ) -> RequestOutput:
        """The request's last output; `EngineFailed` where the engine is dead."""
        request, last = str(next(self._ids)), None
        try:
            async for output in self._llm.generate(
                tokens_input(prompt), params, request, priority=priority
            ):
                last = output
        except EngineDeadError as error:
            raise EngineFailed(f"the engine died: {error}") from error
        if last is None:
            raise EngineFailed("the engine ended a request without an output")
        return last


def _tokens(output: RequestOutput) -> Tokens:
    return Tokens(
        prompt=len(output.prompt_token_ids or ()),
        cached=output.num_cached_tokens or 0,
        generated=len(output.outputs[0].token_ids),
    )
