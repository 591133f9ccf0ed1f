import pickle
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from starforge_rewards.training.areal import LONGEST, reward_fn_of
from starforge_rewards.training.rubric_reward import RewardsFailing, RubricReward
from tests.training import venvs
from tests.training.conformance import environment


def test_a_slow_judge_ends_before_areals_own_15_seconds_and_not_as_a_timeout_error(
    tmp_path: Path,
) -> None:
    assert LONGEST < 15
    reward_fn = reward_fn_of(RubricReward(environment(tmp_path)), deadline=0.2)
    began = time.monotonic()
    with pytest.raises(RewardsFailing, match=r"no score within 0\.2 s") as raised:
        reward_fn("Is it?", "slow", [1], [2])
    assert time.monotonic() - began < 5
    assert not isinstance(raised.value, TimeoutError), "AReaL would make that a 0"


def test_it_works_in_a_spawned_process_and_its_failure_comes_back(tmp_path: Path) -> None:
    reward_fn = reward_fn_of(RubricReward(environment(tmp_path)))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        call = partial(reward_fn, "Is it?", prompt_ids=[1], completion_ids=[2], answer="Yes.")
        assert pool.submit(call, completions="good").result() == 1.0
        with pytest.raises(RewardsFailing, match="unparseable"):
            pool.submit(call, completions="fails").result()


def test_scores_of_earlier_calls_are_known_though_each_call_brings_a_copy(tmp_path: Path) -> None:
    reward_fn = reward_fn_of(RubricReward(environment(tmp_path, "prompt_median")))
    found = [
        pickle.loads(pickle.dumps(reward_fn))("Is it?", said, [1], [2])  # noqa: S301
        for said in ("good", "bad", "fair", "fails")
    ]
    assert found == [1.0, 0.0, 0.6, 0.6]


def test_areals_own_wrapper_raises_and_never_goes_on_with_zero() -> None:
    venvs.run("areal", "tests.training.real.areal")


def test_it_conforms_where_areal_is_installed() -> None:
    venvs.conforms("areal", "areal")
