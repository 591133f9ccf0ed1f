import asyncio
import inspect
import math
from pathlib import Path
from typing import Any

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.verl import compute_score
from tests.training import venvs
from tests.training.conformance import environment


def scored(folder: Path, response: str, **extra: Any) -> dict[str, float]:
    reward = RubricReward(environment(folder))
    asked = compute_score("data", response, "Yes.", extra, environment=reward)
    return asyncio.run(asked)


def test_it_is_a_coroutine_function_since_verl_knows_no_other_async_form() -> None:
    assert inspect.iscoroutinefunction(compute_score)


def test_a_score_has_its_numbers_beside_it(tmp_path: Path) -> None:
    found = scored(tmp_path, "good", prompt="Is it?", split="test", num_turns=2)
    assert math.isnan(found.pop("sf_uncertainty")), "a scripted judge gives no probabilities"
    assert found == {
        "score": 1.0,
        "sf_valid": 1.0,
        "sf_total": 5.0,
        "sf_normalized": 1.0,
        "sf_criterion/Right": 5.0,
        "sf_criterion/Short": 5.0,
    }


def test_a_row_without_a_prompt_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"extra_info\.prompt: .*keep it in this column"):
        scored(tmp_path, "good", question="Is it?")


def test_verls_own_loader_managers_and_advantages_take_it() -> None:
    venvs.run("verl", "tests.training.real.verl")


def test_it_conforms_where_verl_is_installed() -> None:
    venvs.conforms("verl", "verl", "verl-batch", "verl-manager")
