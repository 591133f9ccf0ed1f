import inspect
import pickle

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from starforge_rewards import errors
from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import (
    EngineFailed,
    FieldError,
    InputError,
    NotFound,
    StarforgeError,
    field_path,
    first_problem,
)


class Leaf(BaseModel):
    model_config = ConfigDict(extra="forbid")

    weight: float


class Tree(BaseModel):
    leaves: list[Leaf]

    @model_validator(mode="after")
    def _light(self) -> "Tree":
        for index, leaf in enumerate(self.leaves):
            if leaf.weight > 9:
                raise FieldError("too heavy", "leaves", index, "weight")
        return self


class Wood(BaseModel):
    tree: Tree


def refusal(model: type[BaseModel], data: object) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(data)
    return refused.value


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("bad"), "bad"),
        (InputError("bad", file="a.yaml"), "a.yaml: bad"),
        (InputError("bad", line=3), "line 3: bad"),
        (InputError("bad", file="a.yaml", line=3), "a.yaml:3: bad"),
        (InputError("bad", file="a.yaml", line=3, field="x[0].y"), "a.yaml:3: x[0].y: bad"),
        (InputError("bad", field="x"), "x: bad"),
        (InputError("bad", field=""), "bad"),
    ],
)
def test_an_input_error_says_file_line_field_and_problem_in_this_order(
    error: InputError, said: str
) -> None:
    assert str(error) == said


def test_an_input_error_keeps_its_words_and_its_place_between_processes() -> None:
    sent = InputError("bad", file="a.yaml", line=3, field="x")
    received = pickle.loads(pickle.dumps(sent))  # noqa: S301 - our own bytes
    assert str(received) == str(sent)
    assert (received.problem, received.file, received.line, received.field) == (
        "bad",
        "a.yaml",
        3,
        "x",
    )


@pytest.mark.parametrize(
    ("loc", "path"),
    [
        ((), ""),
        (("criteria",), "criteria"),
        (("criteria", 0, "weight"), "criteria[0].weight"),
        ((2, "weight"), "[2].weight"),
        (("a", 0, 1), "a[0][1]"),
    ],
)
def test_a_field_path_reads_as_a_person_writes_it(loc: tuple[int | str, ...], path: str) -> None:
    assert field_path(loc) == path


def test_an_unknown_key_is_named_with_its_whole_path() -> None:
    error = refusal(Wood, {"tree": {"leaves": [{"weight": 1}, {"weight": 1, "wieght": 2}]}})
    said = str(InputError.of(error))
    assert said == "tree.leaves[1].wieght: unknown key: remove it or correct its spelling"


def test_the_first_problem_is_told_and_the_others_are_counted() -> None:
    error = refusal(Tree, {"leaves": [{"weight": "x"}, {}, {"weight": None}]})
    refused = InputError.of(error, file="t.yaml", line=7)
    assert (refused.file, refused.line, refused.field) == ("t.yaml", 7, "leaves[0].weight")
    assert refused.problem.endswith(" (and 2 more)")


def test_a_whole_models_validator_can_point_at_one_field_of_it() -> None:
    error = refusal(Wood, {"tree": {"leaves": [{"weight": 1}, {"weight": 10}]}})
    assert str(InputError.of(error)) == "tree.leaves[1].weight: too heavy"
    assert first_problem(error).loc == ("tree", "leaves", 1, "weight")
    assert "leaves[1].weight: too heavy" in str(error)


def test_the_path_has_no_step_that_nobody_wrote() -> None:
    data = {"prompt": [{"role": "user"}, {"role": "owner"}], "response": "x"}
    refused = InputError.of(refusal(Rollout, data), data=data)
    assert refused.field == "prompt[1].role"


def test_a_missing_key_is_named_although_the_data_does_not_have_it() -> None:
    data = {"prompt": "x"}
    assert InputError.of(refusal(Rollout, data), data=data).field == "response"
    nested: dict[str, object] = {"tree": {"leaves": [{}]}}
    assert InputError.of(refusal(Wood, nested), data=nested).field == "tree.leaves[0].weight"


@pytest.mark.parametrize("kind", [InputError, NotFound, EngineFailed])
def test_everything_raised_on_purpose_is_a_starforge_error(kind: type[StarforgeError]) -> None:
    assert issubclass(kind, StarforgeError)


def test_the_docstring_draws_every_error() -> None:
    named = [name for name, kind in vars(errors).items() if _is_own_error(kind)]
    assert len(named) >= 5
    assert [name for name in named if name not in (errors.__doc__ or "")] == []


def _is_own_error(kind: object) -> bool:
    return (
        inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
    )
