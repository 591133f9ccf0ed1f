"""Two versions side by side.

What went is struck through and has a minus before it, what came is underlined and has a plus: the
colour only says it again.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue, ValidationError

from starforge_rewards.registry.records import Revision
from starforge_rewards.rubrics.diff import diff
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.server.console.elements import block, cell, row, symbol, table, words
from starforge_rewards.server.console.marking import Piece, mark


def show_diff(before: Revision, after: Revision) -> None:
    """The fields that differ, and which criteria a judge is asked again."""
    try:
        found = diff(Rubric.model_validate(before.rubric), Rubric.model_validate(after.rubric))
    except ValidationError:
        words("p", "These versions are of a kind that cannot be compared here.", "sf-none")
        return
    if not found.changes:
        words("p", "No difference.", "sf-none")
        return
    left, right = f"Version {before.version}", f"Version {after.version}"
    with table(f"{left} and {right}", "Field", left, right, classes="sf-diff"):
        for change in found.changes:
            sides = mark(_text(change.before), _text(change.after))
            with row():
                cell("Field", change.field, "sf-field")
                _side(left, sides.before)
                _side(right, sides.after)
    again = ", ".join(found.asked_again)
    with block("sf-hint", "p"):
        symbol("gavel")
        words("b", "Asked again: " if again else "Asked again: none")
        words("span", again or " – answers to the old text still hold.")  # noqa: RUF001


def _side(column: str, pieces: list[Piece]) -> None:
    with cell(column, classes="sf-prose"):
        for piece in pieces:
            words("span" if piece.kind == "same" else piece.kind, piece.text)


def _text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case dict():
            return "\n".join(_lines(value))
        case list():
            return "\n".join(str(each) for each in value)
        case bool() | int() | float():
            return json.dumps(value).removesuffix(".0")


def _lines(value: dict[str, JsonValue]) -> Iterator[str]:
    for key, each in value.items():
        if isinstance(each, dict):
            yield from (f"{key} {name}: {_text(below)}" for name, below in each.items())
        else:
            yield f"{key}: {_text(each)}"
