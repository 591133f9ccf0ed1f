"""What an edit of a rubric changes, field by field, and which criteria a judge is asked again.

Criteria are matched by name: another name is another criterion.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from starforge_rewards.conversation import Frozen
from starforge_rewards.question import Evidence
from starforge_rewards.rubrics.weighted import Criterion, Poser, Rubric


class Change(Frozen):
    """One field that differs."""

    field: str
    """`scale_max`; `criteria[Clear].weight`; `criteria[Clear]` where it is added or removed; and
    `criteria` for the order, as lists of names."""
    before: JsonValue
    """None where it was not there."""
    after: JsonValue
    """None where it is not there any more."""


class Diff(Frozen):
    """All that two texts of a rubric differ in. Applied to the first, it makes the second."""

    changes: tuple[Change, ...]
    asked_again: tuple[str, ...]
    """Names of the criteria whose question is another or new: no answer to the old one holds."""


def diff(before: Rubric, after: Rubric) -> Diff:
    """What changes from `before` to `after`; empty where they are equal."""
    old, new = _keys(before), _keys(after)
    return Diff(
        changes=(*_rubric_changes(before, after), *_criteria_changes(before, after)),
        asked_again=tuple(name for name, key in new.items() if old.get(name) != key),
    )


def _keys(rubric: Rubric) -> dict[str, bytes]:
    """What each criterion asks, as a digest."""
    posed = Poser(rubric, "").pose(Evidence(parts=()))
    return {c.name: question.key for c, question in zip(rubric.criteria, posed, strict=True)}


def _rubric_changes(before: Rubric, after: Rubric) -> Iterator[Change]:
    old, new = before.model_dump(exclude={"criteria"}), after.model_dump(exclude={"criteria"})
    yield from _changes("", old, new)


def _criteria_changes(before: Rubric, after: Rubric) -> Iterator[Change]:
    old, new = _by_name(before), _by_name(after)
    for name, criterion in old.items():
        path = f"criteria[{name}]"
        if name in new:
            yield from _changes(f"{path}.", criterion.model_dump(), new[name].model_dump())
        else:
            yield Change(field=path, before=criterion.model_dump(), after=None)
    added = [name for name in new if name not in old]
    for name in added:
        yield Change(field=f"criteria[{name}]", before=None, after=new[name].model_dump())
    if [name for name in old if name in new] + added != list(new):  # not added at the end
        yield Change(field="criteria", before=list(old), after=list(new))


def _changes(
    path: str, before: dict[str, JsonValue], after: dict[str, JsonValue]
) -> Iterator[Change]:
    for key, old in before.items():
        if old != after[key]:
            yield Change(field=path + key, before=old, after=after[key])


def _by_name(rubric: Rubric) -> dict[str, Criterion]:
    return {criterion.name: criterion for criterion in rubric.criteria}
