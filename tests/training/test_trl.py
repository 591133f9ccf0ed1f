"""TRL's own trainers, and what they are given."""

import asyncio
import json
import math
import os
import pickle
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerControl, TrainerState

from starforge_rewards.errors import InputError
from starforge_rewards.training.rubric_reward import RewardsFailing
from starforge_rewards.training.trl import StopWhereFailing, TrlReward, training_dataset
from tests import tiny_model
from tests.training import judge_file, made, scripted

ROOT = Path(__file__).parents[2]
SAID = {
    "mixed": ["3", "fail timeout", "5", "1"],
    "none": ["fail refused", "fail timeout", "fail unparseable", "fail truncated"],
    "empty": ["", "4", "4", "fail off_scale"],
    "tie": ["2", "2", "2", "2"],
}
WORTH: dict[str, list[float | None]] = {
    "mixed": [3.0, None, 5.0, 1.0],
    "none": [None] * 4,
    "empty": [0.0, 4.0, 4.0, None],
    "tie": [2.0] * 4,
}


def ran(*command: object, **env: str) -> str:
    """A Python process of its own: trainers leave much behind in theirs."""
    own = {"PYTHONPATH": str(ROOT), "TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, command)],
        capture_output=True,
        text=True,
        env=os.environ | own | env,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def environment(folder: Path, **keys: Any) -> Path:
    rows = [
        {"id": prompt, "prompt": prompt, "metadata": {"said": said}}
        for prompt, said in SAID.items()
    ]
    return made.environment(folder, rows, **keys)


@pytest.fixture(scope="module")
def trained(two_layers: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What GRPO and RLOO made of `SAID`, in an environment that allows fewer failures."""
    folder = tmp_path_factory.mktemp("trl")
    home = environment(folder, abort_failure_rate=0.3)
    script = Path(__file__).with_name("trl_chosen.py")
    ran(script, two_layers, home, judge_file.write(folder), "grpo:4", "rloo:4")
    return json.loads(home.with_suffix(".json").read_text())


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_a_failed_rollout_has_no_reward_and_an_advantage_of_zero(trained: Any, kind: str) -> None:
    for prompt, group in trained[kind]["groups"].items():
        assert {one["said"]: one["reward"] for one in group} == dict(
            zip(SAID[prompt], WORTH[prompt], strict=True)
        )
        assert all(one["advantage"] == 0.0 for one in group if one["reward"] is None)
        assert all(one["sf_cause"] for one in group if one["reward"] is None)


def test_grpo_takes_mean_and_deviation_of_the_scored_rollouts_alone(trained: Any) -> None:
    for prompt, group in trained["grpo"]["groups"].items():
        scored = [worth for worth in WORTH[prompt] if worth is not None]
        for one in group:
            if one["reward"] is not None:
                mean, spread = statistics.mean(scored), statistics.stdev(scored)
                expected = (one["reward"] - mean) / (spread + 1e-4)
                assert one["advantage"] == pytest.approx(expected, abs=1e-5)


def test_rloo_compares_each_scored_rollout_with_the_other_scored_ones(trained: Any) -> None:
    for prompt, group in trained["rloo"]["groups"].items():
        scored = [worth for worth in WORTH[prompt] if worth is not None]
        for one in group:
            if one["reward"] is not None:
                others = (sum(scored) - one["reward"]) / (len(scored) - 1)
                assert one["advantage"] == pytest.approx(one["reward"] - others, abs=1e-5)


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_rewards_and_rates_are_logged_and_the_policy_moves(trained: Any, kind: str) -> None:
    assert trained[kind]["moved"]
    assert trained[kind]["finite"]
    first = trained[kind]["log"][0]
    assert first["rewards/env/mean"] == pytest.approx(2.5)
    assert first["rewards/env/failure_rate"] == pytest.approx(6 / 16)
    assert first["rewards/env/tie_rate"] == pytest.approx(1 / 3)
    assert first["rewards/env/criterion/Right"] == pytest.approx(25 / 9)
    assert 0 < first["rewards/env/judge_wait_fraction"] <= 1


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_a_run_with_too_many_failures_ends_early_and_says_why(trained: Any, kind: str) -> None:
    assert trained[kind]["steps"] == 2
    assert "38% of the recent rollouts have no score" in trained[kind]["ended"]


def test_a_support_desk_is_trained_on_with_a_judge_on_vllm(
    two_layers: Path, tmp_path: Path
) -> None:
    judge = tmp_path / "judge.yaml"
    judge.write_text(tiny_model.judge_yaml(two_layers))
    script = ROOT / "configs" / "trainers" / "trl_grpo.py"
    said = ran(
        script,
        *("--policy", two_layers, "--judge", judge, "--steps", "2"),
        *("--output", tmp_path / "out"),
        SF_CACHE_DIR=str(tmp_path),
    )
    (state,) = (tmp_path / "out").glob("checkpoint-2/trainer_state.json")
    steps = json.loads(state.read_text())["log_history"][:2]
    assert [step["step"] for step in steps] == [1, 2], said
    for step in steps:
        assert 0 < step["rewards/support-desk/mean"] < 5
        assert step["rewards/support-desk/failure_rate"] == 0
        assert math.isfinite(step["loss"])
        assert 0 < step["rewards/support-desk/criterion/Factually correct"] < 5


def test_asyncgrpo_scores_groups_in_the_process_that_it_spawns(
    two_layers: Path, tmp_path: Path
) -> None:
    home = environment(tmp_path, abort_failure_rate=0.3)
    script = Path(__file__).with_name("trl_async.py")
    ran(script, two_layers, home, judge_file.write(tmp_path), 64)
    told = json.loads(home.with_suffix(".json").read_text())
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in told["samples"][:16]:
        groups[sample["prompt"]].append(sample)
        assert sample["names"] == ["reward", "reward_std", "rewards/env"]
    assert set(groups) == set(SAID)
    for prompt, group in groups.items():
        scored = [worth for worth in WORTH[prompt] if worth is not None]
        for one in group:
            assert one["reward"] == WORTH[prompt][SAID[prompt].index(one["said"])]
            if one["reward"] is None:
                assert one["advantage"] == 0.0
            else:
                distance = one["reward"] - statistics.mean(scored)
                expected = distance / (statistics.pstdev(scored) + 1e-8)
                assert one["advantage"] == pytest.approx(expected)
    assert "child has failed" in told["ended"]  # so ends a run whose scores fail too often


def test_a_rank_without_a_judge_ends_the_run_on_all_ranks_and_leaves_none_waiting(
    two_layers: Path, tmp_path: Path
) -> None:
    home, judge = environment(tmp_path), judge_file.write(tmp_path)
    judge_file.write(tmp_path, "nowhere").rename(f"{judge}.away.yaml")
    script = Path(__file__).with_name("trl_ranks.py")
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ran(*torchrun, script, two_layers, home, judge, OMP_NUM_THREADS="1")
    ranks = [json.loads(Path(f"{home}.{rank}.json").read_text()) for rank in range(2)]
    for rank in ranks:
        assert rank["steps"] == 1
        assert [math.isnan(one) for one in rank["rewards"]] == [False, False, True, True]
        assert rank["advantages"][2:] == [0.0, 0.0]
    assert "another rank" in ranks[0]["ended"]
    assert "no function nowhere" in ranks[1]["ended"]


def reward(folder: Path, function: str = "judge", **keys: Any) -> TrlReward:
    return TrlReward(str(made.environment(folder, **keys)), str(judge_file.write(folder, function)))


def asked(one: TrlReward, said: list[str], **columns: Any) -> list[float | None]:
    prompts = ["p"] * len(said)
    return asyncio.run(
        one(prompts=prompts, completions=said, trainer_state=TrainerState(), **columns)
    )


def test_chat_and_plain_data_put_the_same_evidence_before_the_judge(tmp_path: Path) -> None:
    one = reward(tmp_path)
    scripted.ASKED.clear()
    plain = asyncio.run(one(prompts=["p"], completions=["4"]))
    chat = asyncio.run(
        one(
            prompts=[[{"role": "user", "content": "p"}]],
            completions=[[{"role": "assistant", "content": "4"}]],
        )
    )
    assert plain == chat == [4.0]
    assert len({question.evidence for question in scripted.ASKED}) == 1


def test_the_judge_sees_reference_and_context_but_not_what_is_expected(tmp_path: Path) -> None:
    scripted.ASKED.clear()
    row = {"reference": ["the truth"], "context": ["the book"], "expect": ["comply"]}
    assert asked(reward(tmp_path), ["4"], **row, other=["x"]) == [pytest.approx(0.2)]
    shown = scripted.ASKED[0].evidence.model_dump_json()
    assert "the truth" in shown
    assert "the book" in shown
    assert "comply" not in shown


def test_every_batch_logs_the_same_columns(tmp_path: Path) -> None:
    one = reward(tmp_path)
    tables: list[dict[str, list[Any]]] = []
    numbers: dict[str, float] = {}
    for said in (["4", "fail timeout"], ["fail refused"], [""]):
        tables.append({})
        asked(one, said, log_extra=tables[-1].__setitem__, log_metric=numbers.__setitem__)
        assert {len(values) for values in tables[-1].values()} == {len(said)}
    assert tables[0].keys() == tables[1].keys() == tables[2].keys()
    assert tables[0]["sf_criterion/Right"] == [4.0, None]
    assert tables[0]["sf_cause"] == ["", "timeout"]
    assert all(math.isfinite(number) for number in numbers.values())


def test_a_wrong_column_is_raised_where_no_other_rank_waits(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expect"):
        asked(reward(tmp_path), ["4"], expect=["perhaps"])
    with pytest.raises(InputError, match="2 values for 1"):
        asked(reward(tmp_path), ["4"], reference=["a", "b"])


def test_a_run_whose_scores_fail_too_often_is_ended_and_says_so(tmp_path: Path) -> None:
    one = reward(tmp_path)
    assert asked(one, ["fail timeout"] * 40) == [None] * 40
    assert one.failing
    stop, control = StopWhereFailing(one), TrainerControl()
    about: Any = (Arguments(), TrainerState(), control)
    stop.on_step_end(*about)
    assert control.should_training_stop
    with pytest.raises(RewardsFailing, match="100% of the recent rollouts have no score"):
        stop.on_train_end(*about)


class Arguments:
    device = torch.device("cpu")


def test_a_run_that_goes_well_is_not_ended(tmp_path: Path) -> None:
    one = reward(tmp_path)
    assert asked(one, ["4"] * 40) == [4.0] * 40
    stop, control = StopWhereFailing(one), TrainerControl()
    about: Any = (Arguments(), TrainerState(), control)
    stop.on_step_end(*about)
    stop.on_train_end(*about)
    assert not control.should_training_stop


def test_it_is_named_after_its_environment_and_travels_without_its_connection(
    tmp_path: Path,
) -> None:
    one = reward(tmp_path)
    assert asked(one, ["4"]) == [4.0]
    again: TrlReward = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert again.__name__ == "env"
    assert again.reward.pinned == one.reward.pinned
    assert asked(again, ["3"]) == [3.0]


def test_a_dataset_has_turns_and_the_columns_that_some_row_uses(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "prompt": "p", "reference": "r", "metadata": {"k": [1]}},
        {
            "id": "b",
            "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        },
        {"id": "c", "prompt": "q", "split": "eval"},
    ]
    found = training_dataset(made.environment(tmp_path, rows))
    assert found.column_names == ["prompt", "id", "reference", "metadata"]
    assert found[0]["prompt"] == [{"role": "user", "content": "p"}]
    assert json.loads(found[0]["metadata"]) == {"k": [1]}
    assert found[1]["reference"] is None
    assert [turn["role"] for turn in found[1]["prompt"]] == ["system", "user"]
    assert list(training_dataset(made.environment(tmp_path, rows), "eval")["id"]) == ["c"]
    with pytest.raises(InputError, match="no row of the split"):
        training_dataset(made.environment(tmp_path, rows[:2]), "eval")


def test_each_row_may_bring_its_own_rubric(tmp_path: Path) -> None:
    own = made.RUBRIC | {"scale_max": 9}
    rows: list[dict[str, Any]] = [
        {"id": "a", "prompt": "p", "own": own},
        {"id": "b", "prompt": "q", "own": "starforge/support-answer"},
    ]
    home = made.environment(tmp_path, rows, verifier={"kind": "rubric", "ref_column": "own"})
    found = training_dataset(home)
    one = TrlReward(str(home), str(judge_file.write(tmp_path)))
    assert asked(one, ["9", "5"], rubric=list(found["rubric"]), id=list(found["id"])) == [9.0, 5.0]
