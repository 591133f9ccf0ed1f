"""Which words of two texts differ."""

import re
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

_WORD = re.compile(r"\s+|-?[0-9]+(?:\.[0-9]+)?|\w+|[^\w\s]")
_LONGEST = 4000
"""Words beyond which two texts are marked as a whole: to match more would take too long."""


class Piece(NamedTuple):
    """A stretch of text that both sides have, or only one."""

    kind: Literal["same", "del", "ins"]
    text: str


class Sides(NamedTuple):
    """A field's text before and after, each in pieces."""

    before: list[Piece]
    after: list[Piece]


def mark(before: str, after: str) -> Sides:
    """Which words of two texts differ; the pieces of each side make its whole text."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) + len(new) > _LONGEST:
        return Sides([Piece("del", before)], [Piece("ins", after)])
    sides = Sides([], [])
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        same = kind == "equal"
        if i < j:
            sides.before.append(Piece("same" if same else "del", "".join(old[i:j])))
        if k < m:
            sides.after.append(Piece("same" if same else "ins", "".join(new[k:m])))
    return sides
