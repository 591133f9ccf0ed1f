"""AsyncGRPO's own worker: our reward, pickled to the process that it spawns, scores its groups.

Only what vLLM would generate is replaced. Arguments: model folder, environment folder, judge file,
how many samples to wait for. Writes the samples, and how the worker ended.
"""

import json
import math
import queue
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from accelerate import PartialState  # type: ignore[import-untyped]
from transformers import AutoTokenizer
from trl.experimental.async_grpo.async_rollout_worker import (
    AsyncRolloutWorker,
    TurnRecord,
    _AsyncRolloutLoop,
    _chain_to_sequences,
)

from starforge_rewards.training.trl import TrlReward, training_dataset

GENERATIONS = 4


class ChosenLoop(_AsyncRolloutLoop):
    """Says what the row of the prompt says, in turn."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._said = {
            row["prompt"][0]["content"]: json.loads(row["metadata"])["said"]
            for row in named["dataset"]
        }
        self._times: dict[str, int] = {}

    async def _generate_one(self, prompt: Any, *others: Any, **named: Any) -> Any:
        del others, named
        key = prompt[0]["content"]
        self._times[key] = self._times.get(key, 0) + 1
        text = self._said[key][(self._times[key] - 1) % GENERATIONS]
        ids = [*self.tokenizer(text)["input_ids"], 2]
        sequences, _ = _chain_to_sequences([TurnRecord([1], ids, [0.0] * len(ids))], text, 1024)
        turn = [{"role": "assistant", "content": text}]
        return turn, ids, sequences, 0, 0, None


class ChosenWorker(AsyncRolloutWorker):
    _loop_cls = ChosenLoop


def main(model: str, home: str, judge: str, wanted: str) -> None:
    PartialState()  # TRL's trainers do so before they log
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.response_template = "none is parsed here"
    worker = ChosenWorker(
        model_name="chosen",
        dataset=training_dataset(home),
        reward_funcs=[TrlReward(home, judge)],
        processing_class=tokenizer,
        eos_token_ids=[2],
        num_generations=GENERATIONS,
        max_inflight_tasks=GENERATIONS,
    )
    worker.start()
    samples: list[Any] = []
    ended = ""
    until = time.monotonic() + 120
    while len(samples) < int(wanted) and time.monotonic() < until:
        try:
            worker.check_health(stale_after_s=60)
        except RuntimeError as error:
            ended = f"{error} {error.__cause__}"
            break
        with suppress(queue.Empty):
            samples.append(worker.rollout_buffer.get(timeout=0.5))
    if not ended:  # TRL's stop waits for ever for a process that has failed
        worker.stop()
    told = [
        {
            "prompt": one.prompt[0]["content"],
            "said": one.completion[0]["content"],
            "reward": None if math.isnan(one.metrics["reward"]) else one.metrics["reward"],
            "advantage": one.advantage,
            "names": sorted(one.metrics),
        }
        for one in samples
    ]
    Path(f"{home}.json").write_text(json.dumps({"samples": told, "ended": ended}))


if __name__ == "__main__":
    main(*sys.argv[1:])
