from tests.training import conformance  # noqa: F401 - its stubs

from starforge_rewards.training import nemo_gym  # isort: skip


def test_items_of_the_responses_format_become_turns_without_reasoning() -> None:
    found = nemo_gym.item(
        {
            "responses_create_params": {
                "input": [
                    {"role": "developer", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "input_text", "text": "Is it?"}]},
                ]
            },
            "response": {
                "output": [
                    {"type": "reasoning", "summary": [{"text": "Hm."}]},
                    {"type": "function_call", "name": "look", "arguments": "{}", "call_id": "1"},
                    {"type": "function_call_output", "call_id": "1", "output": "It is."},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "Yes."}],
                    },
                ]
            },
            "reference": "Yes.",
            "agent_ref": {"name": "x"},
        }
    )
    assert isinstance(found.row.prompt, tuple)
    assert isinstance(found.response, tuple)
    assert [(one.role, one.content) for one in found.row.prompt] == [
        ("system", "Be brief."),
        ("user", "Is it?"),
    ]
    said = [(one.role, one.content, [c.name for c in one.tool_calls]) for one in found.response]
    assert said == [
        ("assistant", "", ["look"]),
        ("tool", "It is.", []),
        ("assistant", "Yes.", []),
    ]
    assert found.row.reference == "Yes."


def test_a_plain_input_is_the_prompt() -> None:
    found = nemo_gym.item(
        {"responses_create_params": {"input": "Is it?"}, "response": {"output": []}}
    )
    assert (found.row.prompt, found.response) == ("Is it?", ())


def test_rollouts_may_be_verified_again() -> None:
    assert nemo_gym.RubricServerConfig.REVERIFY_MODE == "stateless"
