"""Inspect's own eval with our scorer over a mock model; run in its own virtual environment.

`main` takes a judge file, a folder for logs and the file to write.
"""

import json
import math
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval  # type: ignore[import-not-found]
from inspect_ai.dataset import MemoryDataset, Sample  # type: ignore[import-not-found]
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]
from inspect_ai.solver import generate  # type: ignore[import-not-found]

from starforge_rewards.training.inspect_scorer import rubric_scorer

SAID = ("3", "fail timeout", "5", "")


def evaluated(judge: str, logs: str) -> dict[str, Any]:
    rows = [
        Sample(
            id=f"row-{at}", input=f"question {at}", target="the answer", metadata={"context": "c"}
        )
        for at in range(len(SAID))
    ]
    task = Task(
        dataset=MemoryDataset(rows),
        solver=generate(),
        scorer=rubric_scorer("starforge/support-answer", judge=judge),
    )
    outputs = [ModelOutput.from_content("mock", text) for text in SAID]
    for output in outputs:
        output.usage = ModelUsage()  # else the mock model counts tokens by a file of the internet
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = eval(task, model=model, log_dir=logs, display="none", max_samples=1)
    assert log.results is not None
    assert log.samples is not None
    (about,) = log.results.scores
    return {
        "status": log.status,
        "metrics": {name: metric.value for name, metric in about.metrics.items()},
        "scored": about.scored_samples,
        "unscored": about.unscored_samples,
        "samples": [
            {"value": None if math.isnan(score.value) else score.value}
            | score.model_dump(include={"reason", "explanation", "metadata", "answer"})
            for sample in log.samples
            for score in (sample.scores or {}).values()
        ],
    }


def main(judge: str, logs: str, out: str) -> None:
    Path(out).write_text(json.dumps(evaluated(judge, logs)))
