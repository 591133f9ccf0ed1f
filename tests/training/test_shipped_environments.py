"""What ships to train on: every environment loads, its rows are whole and not alike."""

import json
import re
from itertools import combinations

import pytest

from starforge_rewards.conversation import Content
from starforge_rewards.registry.folder import FolderRegistry
from starforge_rewards.training.checks import within_length
from starforge_rewards.training.dataset import TaskRow, read_tasks
from starforge_rewards.training.environment import load_environment, shipped_environments

COUNTS = {"support-desk": (24, 8), "meeting-notes": (18, 6), "clinic-booking": (15, 5)}


def rows(name: str) -> list[TaskRow]:
    return list(read_tasks(load_environment(name)))


def said(prompt: Content) -> str:
    """What the user says: of a conversation, the turns of theirs."""
    if isinstance(prompt, str):
        return prompt
    return " ".join(message.content for message in prompt if message.role == "user")


def test_three_environments_ship() -> None:
    assert shipped_environments() == sorted(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_each_has_both_splits_and_its_rubrics_resolve(name: str) -> None:
    splits = [row.split for row in rows(name)]
    assert (splits.count("train"), splits.count("eval")) == COUNTS[name]
    for verifier in load_environment(name).environment.all_verifiers:
        if verifier.kind == "rubric" and verifier.ref is not None:
            assert FolderRegistry().resolve(verifier.ref).rubric.criteria


@pytest.mark.parametrize("name", COUNTS)
def test_no_two_rows_are_near_copies(name: str) -> None:
    spoken = {row.id: set(re.findall(r"\w+", said(row.prompt).lower())) for row in rows(name)}
    for (one, a), (other, b) in combinations(spoken.items(), 2):
        assert len(a & b) / len(a | b) < 0.6, (one, other)


def test_a_reference_summary_keeps_to_the_length_that_is_asked() -> None:
    for row in rows("meeting-notes"):
        assert row.reference is not None
        assert within_length(row.rollout(row.reference), row) == 1
        assert within_length(row.rollout(row.reference * 20), row) < 0.2


def test_a_booking_conversation_waits_for_the_agent_and_its_tool_calls_are_whole() -> None:
    needs = [row.metadata["needs_tool"] for row in rows("clinic-booking")]
    assert {True, False} == set(needs)
    for row in rows("clinic-booking"):
        assert not isinstance(row.prompt, str)
        assert (row.prompt[0].role, row.prompt[-1].role) == ("system", "user")
        for message in row.prompt:
            for call in message.tool_calls:
                assert isinstance(json.loads(call.arguments), dict)
                assert call.result is not None
