"""OpenRLHF's own executor with a reward file of ours, and with our server."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from openrlhf.utils.agent import SingleTurnAgentExecutor  # type: ignore[import-not-found]

PROMPT = "<|im_start|>user\nIs it?<|im_end|>\n<|im_start|>assistant\n"


class _Letters:
    """A tokenizer whose ids are characters."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": torch.tensor([[ord(one) for one in text]])}

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return "".join(chr(one) for one in ids)


class _Engine:
    """Answers with the label, and ends the turn."""

    def __init__(self, said: str) -> None:
        self._said = [ord(one) for one in f"{said}<|im_end|>"]

    async def generate(self, *_: Any, **__: Any) -> Any:
        output = SimpleNamespace(token_ids=self._said, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


def main(out: str, where: str, *said: str) -> None:
    """Writes reward and `sf_valid` of each answer, or None where OpenRLHF has none."""

    async def each() -> list[Any]:
        executor = SingleTurnAgentExecutor(where)
        params = SimpleNamespace(max_tokens=64, logprobs=None)
        return [
            await executor.execute(PROMPT, "Yes.", params, 4096, _Letters(), _Engine(one))
            for one in said
        ]

    found = asyncio.run(each())
    lines = []
    for one in found:
        if one["reward"] is None:
            lines.append("None")
            continue
        made = torch.tensor([one["reward"]]), torch.tensor([one["extra_logs"]["sf_valid"]])
        lines.append(" ".join(f"{value.flatten()[0].item():g}" for value in made))
    Path(out).write_text("; ".join(lines))
