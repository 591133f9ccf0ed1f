import random

from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards.conversation import Message
from starforge_rewards.training.grouping import prompt_key, unique
from starforge_rewards.training.reward import Reward
from tests.training.made import RUBRIC, item


@given(st.lists(st.sampled_from("abcd")), st.randoms(use_true_random=False))
def test_rewards_come_back_to_their_rollouts_in_any_order(
    said: list[str], chance: random.Random
) -> None:
    items = [item(text) for text in said]
    chance.shuffle(items)
    found = unique(items)
    assert len(found.items) == len(set(said))
    rewards = [Reward(value=float(ord(str(one.response)))) for one in found.items]
    values = [reward.value for reward in found.scattered(rewards)]
    assert values == [float(ord(str(one.response))) for one in items]


def test_rollouts_that_a_verifier_may_tell_apart_are_not_one() -> None:
    turns = (Message(role="assistant", content="r"),)
    others = [
        item("r"),
        item("other"),
        item("r", prompt="q"),
        item("r", reference="x"),
        item("r", context="x"),
        item("r", expect="comply"),
        item("r", metadata={"x": 1}),
        item("r", rubric="a/b"),
        item("r", rubric=RUBRIC),
        item("r")._replace(response=turns),
    ]
    assert len(unique(others).items) == len(others)


def test_the_id_counts_only_for_verifiers_that_see_it() -> None:
    items = [item("r"), item("r", id="b"), item("r", split="eval")]
    assert len(unique(items).items) == 1
    assert len(unique(items, by_id=True).items) == 2


def test_what_was_judged_once_costs_its_first_alone() -> None:
    found = unique([item("r"), item("r")])
    rewards = found.scattered([Reward(value=1.0, origins={"Right": "asked"})])
    assert [reward.origins["Right"] for reward in rewards] == ["asked", "cached"]


def test_a_prompt_is_known_by_what_it_says() -> None:
    turn = Message(role="user", content="p")
    assert prompt_key("p") == prompt_key("p")
    assert prompt_key((turn,)) == prompt_key((turn.model_copy(),))
    assert len({prompt_key("p"), prompt_key("q"), prompt_key((turn,)), prompt_key(())}) == 4
