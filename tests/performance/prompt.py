"""The token ids that our judge sends to its engine, recorded without one."""

from collections.abc import Sequence
from typing import NamedTuple

from starforge_rewards.conversation import Frozen, Rollout
from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.judge import prompt
from starforge_rewards.judge.model import JudgeModel
from starforge_rewards.judge.slot import SlotJudge, Written
from starforge_rewards.question import NoAnswer, Question, Tokens
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import Poser, evidence_of
from starforge_rewards.scoring import score


class Prompt(Frozen):
    """What an engine is asked for one question: ids up to the slot, and those of its labels."""

    ids: list[int]
    labels: list[int]


class _Read(NamedTuple):
    masses: tuple[float, ...]
    tokens: Tokens


class _Recorder:
    """An engine that writes down what it is sent."""

    def __init__(self, max_model_len: int) -> None:
        self.max_model_len = max_model_len
        self.sent: list[Prompt] = []

    async def read_slot(self, prompt: list[int], labels: list[int], priority: int = 0) -> _Read:
        self.sent.append(Prompt(ids=prompt, labels=labels))
        return _Read((1 / len(labels),) * len(labels), Tokens())

    async def generate(self, prompt: list[int], max_tokens: int, priority: int = 0) -> Written:
        raise NotImplementedError("only slots are recorded")


class Press:
    """Makes the prompts of one model."""

    def __init__(self, model: JudgeModel) -> None:
        self._recorder = _Recorder(int(model.options["max_model_len"]))
        self._tokenizer = ChatTokenizer(model.path_or_name, model.revision)
        self._judge = SlotJudge(self._recorder, self._tokenizer, model.identity)

    async def prompts(self, rubric: ResolvedRubric, rollouts: Sequence[Rollout]) -> list[Prompt]:
        """One for each question, as our judge sends them and in that order."""
        self._recorder.sent = []
        await score(rubric, rollouts, self._judge)
        return self._recorder.sent

    def criterion_first(self, rubric: ResolvedRubric, rollouts: Sequence[Rollout]) -> list[Prompt]:
        """The same pieces, with the criterion before the evidence."""
        poser = Poser(rubric.rubric, str(rubric))
        return [
            self._turned(question)
            for rollout in rollouts
            for question in poser.pose(evidence_of(rollout))
        ]

    def _turned(self, question: Question) -> Prompt:
        frame, slot = self._tokenizer.frame(prompt.SYSTEM), self._judge.slot(question.choices)
        laid = self._judge.lay_out(question)
        if slot is None or isinstance(laid, NoAnswer):
            raise RuntimeError(f"cannot be laid out: {question.source}")
        text = prompt.criterion(question.instruction, question.choices, slot.shown)
        asked = self._tokenizer.material(text)
        end = len(laid.ids) - len(frame.tail) - len(asked)
        evidence = laid.ids[len(frame.head) : end]
        ids = [*frame.head, *asked, *evidence, *frame.tail, *self._tokenizer.trusted(slot.text)]
        return Prompt(ids=ids, labels=slot.labels)
