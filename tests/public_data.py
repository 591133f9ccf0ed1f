"""Public data beside the checkout, for tests that read it where it is; none of it is committed."""

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "shared" / "data"

_PROMETHEUS = re.compile(
    r"###The instruction to evaluate:\n(?P<prompt>.*)"
    r"\n###Response to evaluate:\n(?P<response>.*)"
    r"\n###Reference Answer \(Score 5\):\n(?P<reference>.*)"
    r"\n###Score Rubrics:\n\[(?P<criterion>.*?)\]\n(?P<levels>Score 1:.*?)\n*(###Feedback:.*)?$",
    re.DOTALL,
)


def prometheus_rollouts(count: int) -> list[dict[str, object]]:
    """Rows of Prometheus' MT-Bench set as rollouts, each with its own rubric of five anchors."""
    rows = json.loads((FOLDER / "prometheus" / "mt_bench_eval.json").read_text())
    return [_rollout(number, row) for number, row in enumerate(rows[:count])]


def _rollout(number: int, row: dict[str, str]) -> dict[str, object]:
    found = _PROMETHEUS.search(row["instruction"])
    assert found, number
    anchors = dict(re.findall(r"Score (\d): (.*?)(?=\nScore \d:|$)", found["levels"], re.DOTALL))
    criterion = {
        "name": "Standard",
        "weight": 1,
        "description": found["criterion"].strip(),
        "anchors": {level: text.strip() for level, text in anchors.items()},
    }
    return {
        "id": f"mt-{number}",
        "prompt": found["prompt"].strip(),
        "response": found["response"].strip(),
        "reference": found["reference"].strip(),
        "rubric": {"scale_min": 1, "scale_max": 5, "criteria": [criterion]},
    }
