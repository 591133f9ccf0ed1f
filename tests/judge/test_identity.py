import pytest

from starforge_rewards.judge.identity import JudgeIdentity

FIELDS: dict[str, object] = {
    "model": "org/model",
    "revision": "main",
    "weights": "a1b2",
    "dtype": "bfloat16",
    "engine": "vllm 0.32.0",
    "options": {"max_model_len": 4096, "quantization": None},
    "read": "logprobs",
    "layout": "slot-1",
    "template": "c3d4",
    "decoding": {"temperature": 0},
    "min_mass": 0.5,
    "empty_response": "scale_min",
    "overlong": "fail",
}


def identity(**changed: object) -> JudgeIdentity:
    return JudgeIdentity.model_validate(FIELDS | changed)


CHANGES: dict[str, object] = {
    "model": "org/other",
    "revision": None,
    "weights": "unverified",
    "dtype": None,
    "engine": "vllm 0.33.0",
    "options": {"max_model_len": 2048, "quantization": None},
    "read": "reasoned",
    "layout": "slot-2",
    "template": "e5f6",
    "decoding": {},
    "min_mass": 0.4,
    "empty_response": "unscored",
    "overlong": "head_tail",
}


def test_every_field_of_an_identity_is_tried_below() -> None:
    assert set(CHANGES) == set(FIELDS) == set(JudgeIdentity.model_fields)


@pytest.mark.parametrize("field", CHANGES)
def test_whatever_changes_answers_changes_the_digest(field: str) -> None:
    assert identity(**{field: CHANGES[field]}).digest != identity().digest


def test_a_copy_does_not_keep_the_digest_of_what_it_was_copied_from() -> None:
    first = identity()
    assert first.digest == identity().digest  # it is cached now
    assert first.model_copy(update={"min_mass": 0.4}).digest == identity(min_mass=0.4).digest


def test_the_order_of_options_is_not_part_of_who_answered() -> None:
    turned = {"quantization": None, "max_model_len": 4096}
    assert identity(options=turned).digest == identity().digest


def test_weights_that_cannot_be_told_are_not_verified() -> None:
    assert identity().verified
    assert not identity(weights="unverified").verified
