"""vLLM's own offline class, alone in a process: what a pool is measured beside.

`python -m tests.performance.bare_engine JOB SECONDS` reads the one file and writes the other. The
engine gets the options, the prompts and the sampling of our own engine, and nothing of ours runs.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter

from starforge_rewards.conversation import Frozen
from tests.performance.prompt import Prompt

_SECONDS = TypeAdapter(list[float])


class Job(Frozen):
    """What one process does."""

    model: str
    options: dict[str, JsonValue]
    warm_up: list[Prompt]
    runs: list[list[Prompt]]
    """Each is timed; no two share more than the system message."""


async def run(job: Job, env: Mapping[str, str], folder: Path) -> list[float]:
    """Seconds of each run, in a process of its own; `env` is laid over the environment of this one.

    Raises:
        RuntimeError: the process failed.
    """
    todo, done = folder / "job.json", folder / "seconds.json"
    todo.write_text(job.model_dump_json())
    command = (sys.executable, "-m", "tests.performance.bare_engine", str(todo), str(done))
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **env}, stdout=PIPE, stderr=STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the bare engine failed: {said.decode()[-2000:]}")
    return _SECONDS.validate_json(done.read_bytes())


def _main(todo: Path, done: Path) -> None:
    # Late: the process that measures only needs the types.
    from vllm import LLM, SamplingParams

    from starforge_rewards.engine.vllm import OPTIONS

    job = Job.model_validate_json(todo.read_bytes())
    options: dict[str, Any] = {**OPTIONS, **job.options}
    llm = LLM(model=job.model, **options)

    def generate(prompts: list[Prompt]) -> float:
        inputs = [{"prompt_token_ids": prompt.ids} for prompt in prompts]
        sampling = [
            SamplingParams(
                max_tokens=1, temperature=0, logprob_token_ids=prompt.labels, detokenize=False
            )
            for prompt in prompts
        ]
        began = time.perf_counter()
        outputs = llm.generate(inputs, sampling, use_tqdm=False)
        took = time.perf_counter() - began
        if any(not output.outputs[0].logprobs for output in outputs):
            raise RuntimeError("a prompt brought no log-probabilities")
        return took

    generate(job.warm_up)
    done.write_bytes(_SECONDS.dump_json([generate(prompts) for prompts in job.runs]))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
