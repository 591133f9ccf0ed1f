import logging
import pickle
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.sql import registry_of
from starforge_rewards.registry.tokens import Tokens
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.training.openrlhf import items_in, response_in, reward_func_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.server.asking import BODY
from tests.server.live import live
from tests.training import venvs
from tests.training.conformance import environment

PROMPT = "<|im_start|>user\nIs it?<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("query", "prompt", "response"),
    [
        (f"{PROMPT}Yes.<|im_end|>\n", PROMPT, "Yes."),
        (f"{PROMPT}Yes.", PROMPT, "Yes."),
        ("<s> [INST] Is it? [/INST] Yes.</s>", "[INST] Is it? [/INST]", " Yes."),
        ("<|endoftext|>Is it?No.<|eot_id|><|eot_id|>", "Is it?", "No."),
        ("Is it?Say <|im_end|> twice.<|im_end|>", "Is it?", "Say <|im_end|> twice."),
        ("Is it?Is it?<|im_end|>", "Is it?", "Is it?"),
        ("Is it?<|im_end|>", "Is it?", ""),
        ("Is it?a < b | c > d", "Is it?", "a < b | c > d"),
    ],
)
def test_a_response_is_a_query_without_prompt_and_end_of_turn(
    query: str, prompt: str, response: str
) -> None:
    assert response_in(query, prompt) == response


@pytest.mark.parametrize("query", ["it?Yes.", "Some text. Is it?Yes."])
def test_a_query_that_does_not_begin_with_its_prompt_is_refused(query: str) -> None:
    with pytest.raises(InputError, match="does not begin with its prompt"):
        response_in(query, "Is it?")


def test_a_label_may_be_a_whole_row_of_a_task() -> None:
    label = '{"prompt": "Is it?", "reference": "Yes.", "metadata": {"a": 1}, "other": 2}'
    (item,) = items_in([f"{PROMPT}Yes."], [PROMPT], [label], "row")
    assert (item.row.prompt, item.row.reference, item.response) == ("Is it?", "Yes.", "Yes.")
    assert item.row.metadata == {"a": 1}


@pytest.mark.parametrize("label", ["no JSON", "[1]", 3])
def test_a_label_that_is_no_row_is_refused(label: object) -> None:
    with pytest.raises(InputError, match="labels"):
        items_in(["pr"], ["p"], [label], "row")


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="2 queries, 1 prompts, 2 labels"):
        items_in(["a", "b"], ["a"], ["x", "y"], "reference")


def test_a_failure_is_logged_as_an_error_since_openrlhf_passes_over_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reward_func = reward_func_of(RubricReward(environment(tmp_path)))
    with pytest.raises(RewardsFailing):
        reward_func([f"{PROMPT}fails<|im_end|>"], [PROMPT], ["Yes."])
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "unparseable" in record.getMessage()


def test_copies_of_one_function_share_one_reward(tmp_path: Path) -> None:
    reward_func = reward_func_of(RubricReward(environment(tmp_path)))
    first, second = (pickle.loads(pickle.dumps(reward_func)) for _ in range(2))  # noqa: S301
    for copy in (first, second):
        assert copy([f"{PROMPT}good"], [PROMPT], ["Yes."])["rewards"] == [1.0]
    assert first.reward is second.reward
    assert first.reward.metrics().scored == 2


def test_openrlhfs_executor_loads_the_shipped_file_and_has_no_number_for_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SF_ENVIRONMENT", str(environment(tmp_path)))
    file = Path(__file__).parents[2] / "configs" / "trainers" / "openrlhf_reward.py"
    out = tmp_path / "found"
    said = ("good", "fails", "bad", "fair")
    venvs.run("openrlhf", "tests.training.real.openrlhf", str(out), str(file), *said)
    assert out.read_text() == "1 1; None; 0 1; 0.6 1"


def test_openrlhfs_executor_asks_our_server_with_the_token_as_a_password(tmp_path: Path) -> None:
    named = tmp_path / "environments" / "answers"
    named.mkdir(parents=True)
    (named / "environment.yaml").write_text(
        "name: answers\ndataset: rows.jsonl\nvalue: normalized\n"
        "verifier: {kind: rubric, ref: alice/answer-quality}\n"
    )
    url = f"sqlite:///{tmp_path / 'registry.sqlite'}"
    with closing(Database.open(url)) as database:
        alice = registry_of(database, User(owner="alice"))
        alice.rubrics.put(Ref.parse("alice/answer-quality"), Rubric.model_validate(BODY))
        token = Tokens(database).create("alice").token
        with live(tmp_path, url) as server:
            address = server.url.removeprefix("http://").rstrip("/")
            path = f"{address}/api/rewards/openrlhf/answers?run=openrlhf-run-1"
            out = tmp_path / "found"
            where = f"http://token:{token}@{path}"
            said = ("An answer.", "late")
            venvs.run("openrlhf", "tests.training.real.openrlhf", str(out), where, *said)
            assert out.read_text() == "0.766667 1; None"
            assert token not in "".join(server.log)
        run = alice.runs.show("openrlhf-run-1")
        assert (run.role, [one.rubric for one in run.citations]) == (
            "training_reward",
            ["alice/answer-quality@1"],
        )


def test_it_conforms_in_openrlhfs_environment() -> None:
    venvs.conforms("openrlhf", "openrlhf")


def test_importing_it_loads_no_torch() -> None:
    code = "import sys, starforge_rewards.training.openrlhf; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_prompt_that_is_empty_and_a_label_nested_too_deeply_are_refused() -> None:
    with pytest.raises(InputError, match="prompts: is empty"):
        items_in(["<user>hi</s>"], [""], ["x"], "reference")
    with pytest.raises(InputError, match="labels: not JSON"):
        items_in(["hi there"], ["hi"], ["[" * 200_000], "row")
