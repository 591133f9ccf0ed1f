"""One way to ask every adapter for a group's rewards, as its trainer asks.

`main` runs the cases of some adapters; `tests.training.venvs` does so where a trainer is installed.
"""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

STUBS = Path(__file__).parent / "stubs"
if str(STUBS) not in sys.path:
    sys.path.append(str(STUBS))  # last: a package that is installed wins

Worth = float | None
"""None: the trainer was told, in its own form, that there is no score."""
Mixed = list[dict[str, Any]]


class Group(NamedTuple):
    """Rollouts of one prompt, with what the dataset says of each."""

    prompt: str
    responses: Sequence[str]
    rows: Sequence[dict[str, Any]]


class Asked(NamedTuple):
    """What an adapter answered."""

    worth: list[Worth]
    logged: Sequence[dict[str, Any]] = ()
    """The numbers beside each reward, where the trainer takes any."""


class Adapter(NamedTuple):
    """An adapter, called as its trainer calls it."""

    name: str
    failure: Literal["raises", "left out"]
    sees_group: bool
    """Whether one call has all rollouts of a prompt."""
    ask: Callable[[Any, Group], Asked]


def environment(folder: Path, on_failure: str = "stop") -> Path:
    """An environment whose judge reads `tests.training.judging`."""
    made = folder / "conform"
    made.mkdir()
    criteria = [{"name": "Right", "weight": 3}, {"name": "Short", "weight": 1}]
    for criterion in criteria:
        criterion["description"] = f"It is {criterion['name']}."
    rubric = {"scale_min": 0, "scale_max": 5, "criteria": criteria}
    written = {
        "name": "conform",
        "dataset": "rows.jsonl",
        "verifier": {"kind": "rubric", "rubric": rubric},
        "judge": {"kind": "scripted", "function": "tests.training.judging:judge", "reuse": False},
        "value": "normalized",
        "on_failure": on_failure,
    }
    (made / "environment.yaml").write_text(json.dumps(written))  # JSON is YAML
    (made / "rows.jsonl").write_text('{"id": "a", "prompt": "Is it?"}\n')
    return made


def group(*responses: str) -> Group:
    """Rows with different keys each: a reference, nothing, a context and metadata."""
    rows: Mixed = [{"reference": "Yes."}, {}, {"context": "A book.", "metadata": {"a": 1}}]
    return Group("Is it?", responses, [rows[at % 3] for at in range(len(responses))])


def advantages(worth: Sequence[Worth]) -> list[Worth]:
    """Of a group: each score less the mean of all scores; of no score, none."""
    mean = statistics.fmean(one for one in worth if one is not None)
    return [None if one is None else one - mean for one in worth]


def run(awaited: Any) -> Any:
    """The result of a coroutine, on a loop of its own."""

    async def waited() -> Any:
        return await awaited

    return asyncio.run(waited())


ANSWERED = {"good": 1.0, "fair": 0.6, "bad": 0.0, "": 0.0}
"""What the judge, and the rule for an empty response, make of a response."""


def check(adapter: Adapter, folder: Path) -> None:
    """What every adapter must do; raises where it does not."""
    from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward

    reward = RubricReward(environment(folder))
    said = ("good", "bad", "", "fair", "fair")
    found = adapter.ask(reward, group(*said))
    expected = [ANSWERED[one] for one in said]
    assert _rounded(found.worth) == expected, found.worth
    assert len({tuple(sorted(one)) for one in found.logged}) <= 1, "one set of keys"
    try:
        failed = adapter.ask(reward, group("good", "fails", "bad", "fair"))
    except RewardsFailing:
        assert adapter.failure == "raises"
        return
    assert adapter.failure == "left out"
    assert failed.worth[1] is None, failed.worth
    mean = (1.0 + 0.0 + 0.6) / 3
    left = _rounded(advantages(failed.worth))
    assert left == _rounded([1.0 - mean, None, 0.0 - mean, 0.6 - mean]), left


def _rounded(worth: Sequence[Worth]) -> list[Worth]:
    return [None if one is None else round(one, 9) for one in worth]


def main(*names: str) -> None:
    """The cases of some adapters, in a process of their own."""
    from tests.training.adapters import BY_NAME  # late: they need what is above

    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            check(BY_NAME[name], Path(folder))
