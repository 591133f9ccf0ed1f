"""The judge on our own engine: the turn is pre-filled, so that the next token is the verdict.

Pieces of the prompt are tokenised apart and never joined and tokenised again: evidence once per
rollout, a criterion once per rubric. No id of the material is a control token of the model.
"""

import asyncio
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, Protocol

from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.judge import prompt
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.question import Choice, Evidence, NoAnswer, Question, Reply, Tokens, weighed


class Read(Protocol):
    """What an engine read at the slot."""

    @property
    def masses(self) -> tuple[float, ...]: ...
    @property
    def tokens(self) -> Tokens: ...


class Written(Protocol):
    """What an engine generated."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> Tokens: ...


class SlotEngine(Protocol):
    """What this judge needs of an engine; `engine.vllm.Engine` is one."""

    max_model_len: int

    async def read_slot(self, prompt: list[int], labels: list[int], priority: int = 0) -> Read: ...
    async def generate(self, prompt: list[int], max_tokens: int, priority: int = 0) -> Written: ...


class Slot(NamedTuple):
    """How one shape of question is shown and read."""

    text: str
    shown: tuple[str, ...]
    labels: list[int]
    text_ids: list[int]


class Laid(NamedTuple):
    """A question as token ids, up to where the judge goes on."""

    ids: list[int]
    slot: Slot


class SlotJudge:
    """Answers by the probabilities of the label tokens at one forced position."""

    def __init__(
        self,
        engine: SlotEngine,
        tokenizer: ChatTokenizer,
        identity: JudgeIdentity,
        reason_tokens: int = 160,
    ) -> None:
        self.identity = identity
        self._engine, self._tokenizer = engine, tokenizer
        self._frame = tokenizer.frame(prompt.SYSTEM)
        self._reason_tokens = reason_tokens
        self._evidence = lru_cache(maxsize=1024)(self._evidence_pieces)
        self._question = lru_cache(maxsize=4096)(self._criterion_ids)
        self.slot = lru_cache(maxsize=1024)(self._slot)

    async def answer(self, questions: Sequence[Question], priority: int = 0) -> list[Reply]:
        """One reply per question, in order; lower priority numbers are served first."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._reply(q, priority)) for q in questions]
        return [task.result() for task in tasks]

    async def _reply(self, question: Question, priority: int) -> Reply:
        try:
            laid = self.lay_out(question)
            return laid if isinstance(laid, NoAnswer) else await self._ask(question, laid, priority)
        except ValueError as error:  # control tokens in the material, or a request vLLM refuses
            return NoAnswer.because("refused", error)

    async def _ask(self, question: Question, laid: Laid, priority: int) -> Reply:
        if self.identity.read == "logprobs":
            return await self._read(question, laid, priority)
        lead = laid.ids + self._tokenizer.trusted(prompt.REASON)
        written = await self._engine.generate(lead, self._reason_tokens, priority)
        reason = written.text.strip()
        said = self._tokenizer.material(f" {reason}")[: self._reason_tokens]
        ids = lead + said + self._tokenizer.trusted("\n")
        read = await self._read(question, Laid(ids, laid.slot), priority, reason)
        return read.model_copy(update={"tokens": read.tokens + written.tokens})

    async def _read(self, question: Question, laid: Laid, priority: int, reason: str = "") -> Reply:
        ids = laid.ids + laid.slot.text_ids
        read = await self._engine.read_slot(ids, laid.slot.labels, priority)
        complete = len(read.masses) == len(laid.slot.labels)
        if not (complete and all(0 <= mass < math.inf for mass in read.masses)):  # nor NaN
            said = "the engine did not return every label's probability"
            return NoAnswer.because("off_scale", said, read.tokens)
        return weighed(
            question,
            read.masses,
            min_mass=self.identity.min_mass,
            reason=reason,
            tokens=read.tokens,
        )

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        """The slot, the shown labels and their token ids, for the operator."""
        slot = self.slot(choices)
        if slot is None:
            return "none: no set of labels is one token each in this model"
        pairs = zip(slot.shown, slot.labels, strict=True)
        return f"after {slot.text!r}: " + ", ".join(f"{label!r}={token}" for label, token in pairs)

    def lay_out(self, question: Question) -> Laid | NoAnswer:
        """The question as token ids without its slot; `overlong` where it does not fit."""
        slot = self.slot(question.choices)
        if slot is None:
            said = f"no set of {len(question.choices)} labels is one token each in this model"
            return NoAnswer.because("off_scale", said)
        asked = self._question(question.instruction, question.choices)
        fixed = len(self._frame.head) + len(asked) + len(self._frame.tail)
        reserve = 16 + (self._reason_tokens + 16 if self.identity.read == "reasoned" else 0)
        room = self._engine.max_model_len - fixed - reserve
        evidence = self._evidence(question.evidence)
        size = sum(map(len, evidence))
        if size > room:
            if self.identity.overlong == "fail":
                limit = self._engine.max_model_len
                said = f"{fixed + size + reserve} tokens, and the judge's context holds {limit}"
                return NoAnswer.because("overlong", said)
            cut = self._cut(evidence, size - room)
            if cut is None:
                return NoAnswer.because("overlong", "even a cut response does not fit")
            evidence = cut
        ids = [*self._frame.head, *chain.from_iterable(evidence), *asked, *self._frame.tail]
        return Laid(ids, slot)

    def _cut(self, evidence: tuple[list[int], ...], excess: int) -> tuple[list[int], ...] | None:
        """The evidence with the middle of its longest piece left out, and a note in its place."""
        longest = max(range(len(evidence)), key=lambda index: len(evidence[index]))
        piece = evidence[longest]
        note = self._tokenizer.trusted("\n[... the middle is left out ...]\n")
        keep = len(piece) - excess - len(note)
        if keep < 2:
            return None
        shorter = piece[: keep - keep // 2] + note + piece[len(piece) - keep // 2 :]
        return (*evidence[:longest], shorter, *evidence[longest + 1 :])

    def _slot(self, choices: tuple[Choice, ...]) -> Slot | None:
        """The first alphabet and slot text for which every label is one token of its own."""
        for shown in prompt.alphabets(choices):
            for text in prompt.SLOTS:
                if labels := self._tokenizer.label_ids(text, shown):
                    return Slot(text, shown, labels, self._tokenizer.trusted(text))
        return None

    def _evidence_pieces(self, evidence: Evidence) -> tuple[list[int], ...]:
        return tuple(
            self._tokenizer.material(piece.text)
            if piece.material
            else self._tokenizer.trusted(piece.text)
            for piece in prompt.pieces(evidence)
        )

    def _criterion_ids(self, instruction: str, choices: tuple[Choice, ...]) -> list[int]:
        slot = self.slot(choices)
        assert slot is not None  # noqa: S101 - lay_out asked before
        return self._tokenizer.material(prompt.criterion(instruction, choices, slot.shown))
