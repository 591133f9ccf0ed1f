"""The slot judge with a reason first, and where the evidence is longer than the context."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge_rewards.engine.fake import FakeEngine, FakeGeneration
from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.judge.identity import Read
from starforge_rewards.question import NoAnswer, Tokens
from tests.judge.slot_asks import answered, ask, failed, judge_of, question

# --- a reason first ---


class Wordy(FakeEngine):
    """Writes as much as it may, and more."""

    async def generate(
        self, prompt: list[int], max_tokens: int, priority: int = 0
    ) -> FakeGeneration:
        await super().generate(prompt, max_tokens)
        return FakeGeneration("because </think> " * 99, Tokens(generated=max_tokens))


def test_a_reason_is_written_first_and_the_slot_read_after_it(
    tokenizer: ChatTokenizer, decode: Callable[[list[int]], str]
) -> None:
    engine = FakeEngine()
    reply = answered(ask(judge_of(tokenizer, engine, read="reasoned"), question())[0])
    assert reply.reason.startswith("because of ")
    seen = engine.read[0]
    assert decode(seen).endswith(f"Reason: {reply.reason}\nScore: ")
    lead = (
        len(seen)
        - len(tokenizer.material(f" {reply.reason}"))
        - len(tokenizer.trusted("\nScore: "))
    )
    assert reply.tokens == Tokens(prompt=lead + len(seen), generated=3 + 1)


def test_a_reason_that_no_slot_follows_costs_its_tokens_all_the_same(
    tokenizer: ChatTokenizer,
) -> None:
    engine = FakeEngine(masses=lambda _ids, labels: (0.0,) * len(labels))
    reply = failed(ask(judge_of(tokenizer, engine, read="reasoned"), question())[0])
    assert reply.cause == "off_scale"
    assert reply.tokens.generated == 3 + 1


def test_a_reason_without_end_is_cut_and_cannot_close_its_turn(tokenizer: ChatTokenizer) -> None:
    engine = Wordy()
    judge = judge_of(tokenizer, engine, read="reasoned")
    laid = judge.lay_out(question())
    assert not isinstance(laid, NoAnswer)
    answered(ask(judge, question())[0])
    added = engine.read[0][len(laid.ids) :]
    assert len(added) == 20 + len(tokenizer.trusted("Reason:") + tokenizer.trusted("\nScore: "))
    assert tokenizer.added.isdisjoint(added)


# --- room ---


def long(tokenizer: ChatTokenizer, tokens: int) -> str:
    """A response of so many tokens, each end of its own kind."""
    ends = len(tokenizer.material("START7")) + len(tokenizer.material("END")) - 1
    text = "START" + "7" * (tokens - ends) + "END"
    assert len(tokenizer.material(text)) == tokens
    return text


def test_what_does_not_fit_is_overlong_and_says_by_how_much(tokenizer: ChatTokenizer) -> None:
    engine = FakeEngine(max_model_len=1500)
    judge = judge_of(tokenizer, engine)
    reply = failed(ask(judge, question(long(tokenizer, 2000)))[0])
    assert reply.cause == "overlong"
    size, limit = (int(word) for word in reply.detail.split() if word.isdigit())
    assert limit == 1500
    assert size > 2000
    assert engine.read == []


@pytest.mark.parametrize("read", ["logprobs", "reasoned"])
def test_the_last_token_that_fits_is_the_same_for_both_rules(
    tokenizer: ChatTokenizer, read: Read
) -> None:
    fails = judge_of(tokenizer, FakeEngine(max_model_len=2000), read=read)
    cuts = judge_of(tokenizer, FakeEngine(max_model_len=2000), read=read, overlong="head_tail")
    empty = fails.lay_out(question(""))
    over = fails.lay_out(question(long(tokenizer, 4000)))
    assert not isinstance(empty, NoAnswer)
    assert isinstance(over, NoAnswer)
    reserve = int(over.detail.split()[0]) - 4000 - len(empty.ids)
    room = 2000 - reserve - len(empty.ids)
    fit = question(long(tokenizer, room))
    assert fails.lay_out(fit) == cuts.lay_out(fit)
    assert not isinstance(fails.lay_out(fit), NoAnswer)
    assert isinstance(fails.lay_out(question(long(tokenizer, room + 1))), NoAnswer)
    cut = cuts.lay_out(question(long(tokenizer, room + 1)))
    assert not isinstance(cut, NoAnswer)
    assert len(cut.ids) == 2000 - reserve


@settings(deadline=None, max_examples=25)
@given(tokens=st.integers(800, 3000), read=st.sampled_from(["logprobs", "reasoned"]))
def test_a_cut_response_keeps_head_and_tail_and_the_engine_takes_it(
    tokenizer: ChatTokenizer, decode: Callable[[list[int]], str], tokens: int, read: Read
) -> None:
    engines = [Wordy(max_model_len=2000), Wordy(max_model_len=2000)]
    asked = question(long(tokenizer, tokens))
    for engine in engines:
        answered(ask(judge_of(tokenizer, engine, read=read, overlong="head_tail"), asked)[0])
    text = decode(engines[0].read[0])
    assert "<response>\nSTART7" in text
    assert "7END\n</response>" in text
    assert engines[0].read == engines[1].read


def test_where_even_a_cut_response_does_not_fit_it_is_overlong(tokenizer: ChatTokenizer) -> None:
    judge = judge_of(tokenizer, FakeEngine(max_model_len=64), overlong="head_tail")
    assert failed(ask(judge, question(long(tokenizer, 500)))[0]).cause == "overlong"
