import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards.conversation import Message, ToolCall
from starforge_rewards.errors import InputError
from starforge_rewards.training.calls import content, item_of, items_of, parted, reward_of
from tests.training.conformance import environment

TURNS = [
    {"role": "user", "content": "Book it."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"a": 1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "Booked."}]},
    {"role": "assistant", "content": "It is booked."},
]


def test_turns_of_the_chat_format_become_ours() -> None:
    assert content(TURNS, "response") == (
        Message(role="user", content="Book it."),
        Message(role="assistant", tool_calls=(ToolCall(name="book", arguments='{"a": 1}'),)),
        Message(role="tool", content="Booked."),
        Message(role="assistant", content="It is booked."),
    )


def test_a_conversation_parts_where_the_policy_first_spoke() -> None:
    prompt, response = parted(np.array(TURNS, dtype=object))
    assert (len(prompt), len(response)) == (1, 3)
    assert parted(TURNS[:1]).response == ()


@pytest.mark.parametrize("said", [3, None, ["no turn"], [{"content": "no role"}], [{"role": "x"}]])
def test_what_is_no_conversation_is_refused_with_its_place(said: object) -> None:
    with pytest.raises(InputError, match=r"^response"):
        content(said, "response")


def test_columns_of_a_table_are_read_whatever_holds_them() -> None:
    row = {
        "id": np.int64(7),
        "reference": np.array(["a", "b"]),
        "metadata": {"many": np.array([1, 2]), "none": None},
        "rubric": json.dumps({"scale_max": 5}),
        "split": "test",
        "context": None,
        "index": 3,
    }
    item = item_of(np.array([{"role": "user", "content": "Is it?"}], dtype=object), "Yes.", row)
    assert (item.row.id, item.row.reference) == ("7", '["a", "b"]')
    assert item.row.metadata == {"many": [1, 2]}
    assert item.row.rubric == {"scale_max": 5}
    assert item.row.split == "train", "a trainer's split is not ours"


def test_a_rubric_by_reference_stays_a_reference() -> None:
    assert item_of("p", "r", {"rubric": "alice/answer@2"}).row.rubric == "alice/answer@2"


def test_a_refused_column_is_named() -> None:
    with pytest.raises(InputError, match="expect"):
        item_of("p", "r", {"expect": "maybe"})
    with pytest.raises(InputError, match="rubric: not JSON"):
        item_of("p", "r", {"rubric": "{broken"})


def test_columns_of_a_batch_must_be_as_long_as_it_is() -> None:
    with pytest.raises(InputError, match="reference: 1 values for 2 completions"):
        items_of(["p", "p"], ["a", "b"], {"reference": ["x"]})


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(alphabet="ab<|>{}\n"))
def test_texts_reach_the_judge_as_they_are(prompt: str, response: str) -> None:
    item = item_of(prompt, response, reference=response)
    assert (item.row.prompt, item.response, item.row.reference) == (prompt, response, response)


def test_threads_that_come_first_make_one_reward(tmp_path: Path) -> None:
    named = str(environment(tmp_path))
    made: list[Any] = []
    threads = [threading.Thread(target=lambda: made.append(reward_of(named))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in made}) == 1
    assert reward_of(named, run_id="another-run-1") is not made[0]


def test_a_column_may_come_in_any_form_and_is_never_passed_over() -> None:
    references = np.array(["right", "also right"], dtype=object)
    items = items_of(["p", "q"], ["a", "b"], {"reference": references})
    assert [item.row.reference for item in items] == ["right", "also right"]
    with pytest.raises(InputError, match="reference: must hold one value for each completion"):
        items_of(["p", "q"], ["a", "b"], {"reference": "ri"})
