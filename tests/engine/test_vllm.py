import warnings

import pytest

from starforge_rewards.errors import EngineFailed


@pytest.mark.parametrize(
    "options", [{"enforce_eagr": True}, {"enforce_eagr": 1, "dtype": "float32"}]
)
def test_an_option_that_the_engine_does_not_know_is_named_before_anything_starts(
    options: dict[str, object],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what vllm says while it is imported
        from starforge_rewards.engine.vllm import Engine
    with pytest.raises(EngineFailed, match="unknown engine option: enforce_eagr"):
        Engine("nobody/nothing", options)
