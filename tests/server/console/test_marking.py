from hypothesis import given
from hypothesis import strategies as st

from starforge_rewards.server.console.marking import Piece, mark

TEXTS = st.text(alphabet="ab 1.,\n", max_size=60)


@given(before=TEXTS, after=TEXTS)
def test_the_pieces_of_each_side_make_its_text(before: str, after: str) -> None:
    sides = mark(before, after)
    assert "".join(piece.text for piece in sides.before) == before
    assert "".join(piece.text for piece in sides.after) == after
    same = [[p.text for p in side if p.kind == "same"] for side in sides]
    assert "".join(same[0]) == "".join(same[1])


def test_only_the_words_that_differ_are_marked_and_numbers_as_a_whole() -> None:
    sides = mark("weigh 2 now", "weigh 2.5 now")
    assert sides.before == [Piece("same", "weigh "), Piece("del", "2"), Piece("same", " now")]
    assert sides.after == [Piece("same", "weigh "), Piece("ins", "2.5"), Piece("same", " now")]


def test_long_texts_are_marked_as_a_whole_so_that_nobody_waits() -> None:
    before, after = "a b " * 5000, "b a " * 5000
    assert mark(before, after).before == [Piece("del", before)]
