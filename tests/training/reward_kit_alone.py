"""reward-kit, as eval-protocol was called before, where that is not installed."""

import sys

from tests.training import conformance


def main() -> None:
    sys.modules["eval_protocol"] = None  # type: ignore[assignment]  # as if it were not there
    from starforge_rewards.training import eval_protocol

    assert vars(eval_protocol)["EvaluateResult"].__module__.startswith("reward_kit")
    conformance.main("eval_protocol", "eval_protocol-batch")


if __name__ == "__main__":
    main()
