import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from starforge_rewards.errors import InputError
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric, digest
from starforge_rewards.rubrics.weighted import Rubric

WORD = string.ascii_letters + string.digits
SEGMENTS = st.builds(
    str.__add__, st.sampled_from(WORD), st.text(st.sampled_from(WORD + "._-"), max_size=127)
).filter(lambda segment: segment != "resolve")
VERSIONS = st.none() | st.integers(1, 999_999_999)

BODY: dict[str, JsonValue] = {
    "description": "Support answers.",
    "visibility": "private",
    "scale_min": 0,
    "scale_max": 5,
    "levels": None,
    "criteria": [
        {
            "name": "Correct",
            "weight": 3,
            "description": "True.",
            "anchors": {"0": "no", "5": "yes"},
        },
        {"name": "Cites", "weight": 1, "description": "Names the section."},
    ],
}


def rubric(**changed: JsonValue) -> Rubric:
    return Rubric.model_validate(BODY | changed)


def with_criterion(**changed: JsonValue) -> Rubric:
    first, second = Rubric.model_validate(BODY).model_dump(mode="json")["criteria"]
    return rubric(criteria=[first | changed, second])


@settings(deadline=None)
@given(SEGMENTS, SEGMENTS, VERSIONS)
def test_a_ref_is_the_same_after_a_trip_through_text(
    owner: str, name: str, version: int | None
) -> None:
    ref = Ref(owner=owner, name=name, version=version)
    assert Ref.parse(str(ref)) == ref


@settings(deadline=None)
@given(st.text(max_size=12) | st.text(st.sampled_from("ab/@01.-_"), max_size=12))
def test_any_text_is_a_ref_with_that_spelling_or_is_refused(text: str) -> None:
    try:
        ref = Ref.parse(text)
    except InputError:
        return
    assert str(ref) == text


@pytest.mark.parametrize("text", ["a/b", "A/b", "a/resolve", "1/2@3", "a.b_c-d/e..f", "a/b@10"])
def test_a_ref_names_an_owners_rubric(text: str) -> None:
    assert str(Ref.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "bare name"),
        ("answer-quality", "bare name"),
        ("answer-quality@3", "bare name"),
        ("@1", "bare name"),
        ("/b", "owner must match"),
        ("a/", "name must match"),
        ("a/b/c", "name must match"),
        ("../b", "owner must match"),
        ("a/..", "name must match"),
        ("a/.b", "name must match"),
        ("a/-b", "name must match"),
        ("a/b c", "name must match"),
        ("a/b\n", "name must match"),
        ("a/ü", "name must match"),
        ("a/" + "b" * 129, "name must match"),
        ("a" * 129 + "/b", "owner must match"),
        ("resolve/b", "reserved"),
        ("a/b@", "whole number from 1, as in a/b@1"),
        ("a/b@0", "whole number"),
        ("a/b@-1", "whole number"),
        ("a/b@01", "whole number"),
        ("a/b@1.0", "whole number"),
        ("a/b@1@2", "whole number"),
        ("a/b@latest", "whole number"),
        ("a/b@1\n", "whole number"),
        ("a/b@\u0661", "whole number"),
        ("a/b@\u00b2", "whole number"),
        ("a/b@" + "1" * 5000, "whole number"),
    ],
)
def test_what_is_not_a_ref_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Ref.parse(text)


def test_a_name_may_have_128_characters() -> None:
    assert Ref.parse("a/" + "b" * 128).name == "b" * 128


@pytest.mark.parametrize(
    ("ref", "unversioned", "said"),
    [
        (Ref.parse("a/b@2"), False, "a/b@2"),
        (Ref.parse("a/b"), True, "a/b"),
        (None, True, f"inline {digest(rubric())[:12]}"),
    ],
)
def test_a_rubric_without_a_number_is_unversioned(
    ref: Ref | None, unversioned: bool, said: str
) -> None:
    pinned = ResolvedRubric.pin(rubric(), ref)
    assert (pinned.unversioned, str(pinned)) == (unversioned, said)
    assert pinned.digest == digest(pinned.rubric)


@pytest.mark.parametrize("changed", [{"description": "Else."}, {"visibility": "public"}])
def test_the_digest_does_not_see_description_and_visibility(changed: dict[str, JsonValue]) -> None:
    assert rubric(**changed) != rubric()
    assert digest(rubric(**changed)) == digest(rubric())


@pytest.mark.parametrize(
    "changed",
    [
        {"scale_min": -1},
        {"scale_max": 6},
        {"levels": 6},
        {"criteria": [{"name": "Correct", "weight": 3}]},
    ],
)
def test_the_digest_sees_every_other_field(changed: dict[str, JsonValue]) -> None:
    assert digest(rubric(**changed)) != digest(rubric())


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "correct"},
        {"weight": 3.0000000000000004},
        {"description": "True"},
        {"anchors": {"0": "no", "5": "yes!"}},
        {"anchors": {"0": "no", "4": "yes"}},
        {"anchors": {}},
    ],
)
def test_the_digest_sees_every_field_of_a_criterion(changed: dict[str, JsonValue]) -> None:
    assert digest(with_criterion()) == digest(rubric())
    assert digest(with_criterion(**changed)) != digest(rubric())


def test_the_digest_covers_all_fields_that_a_rubric_has() -> None:
    # A new field must be put into one of the three tests above.
    assert set(rubric().model_dump()) == set(BODY)
    assert set(rubric().criteria[0].model_dump()) == {"name", "weight", "description", "anchors"}


def test_the_digest_sees_the_order_of_criteria_and_not_that_of_anchors() -> None:
    first, second = rubric().model_dump(mode="json")["criteria"]
    assert digest(rubric(criteria=[second, first])) != digest(rubric())
    assert digest(with_criterion(anchors={"5": "yes", "0": "no"})) == digest(rubric())


def test_the_digest_does_not_see_how_the_same_content_was_written() -> None:
    assert digest(rubric(scale_min=0.0, scale_max=5.0)) == digest(rubric())
    assert digest(with_criterion(name=" Correct\n", weight=3.0)) == digest(rubric())


def test_the_digest_of_a_rubric_is_the_same_in_every_process_and_release() -> None:
    # Another value would tell every user that their rubrics were edited.
    assert digest(rubric()).startswith("1697b9222926a7b4")
