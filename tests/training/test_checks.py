import pytest

from starforge_rewards.conversation import Message
from starforge_rewards.errors import InputError
from starforge_rewards.training.checks import within_length
from tests.training.made import item


def value(response: object, **metadata: object) -> float:
    one = item("", metadata=metadata)
    return within_length(one.row.rollout(response), one.row)  # type: ignore[arg-type]


def test_a_response_within_the_length_gets_all_and_a_longer_one_its_share() -> None:
    assert value("one two", most_words=2) == 1
    assert value("", most_words=2) == 1
    assert value("one two three four", most_words=2) == 0.5
    turns = (Message(role="assistant", content="one two"), Message(role="tool", content="three"))
    assert value(turns, most_words=2) == pytest.approx(2 / 3)


@pytest.mark.parametrize("most", [None, True, 0, "2", 2.0])
def test_a_row_that_says_no_length_is_a_mistake(most: object) -> None:
    with pytest.raises(InputError, match=r"metadata\.most_words: must be a whole number from 1"):
        value("one", most_words=most)
