"""Questions for a slot judge on an engine without a model."""

import asyncio

from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.judge import prompt
from starforge_rewards.judge.identity import JudgeIdentity, OverlongRule, Read
from starforge_rewards.judge.slot import SlotEngine, SlotJudge
from starforge_rewards.question import Answer, Choice, Evidence, NoAnswer, Part, Question, Reply

SIX = tuple(Choice(label=str(n), value=float(n)) for n in range(6))


def judge_of(
    tokenizer: ChatTokenizer,
    engine: SlotEngine,
    *,
    read: Read = "logprobs",
    overlong: OverlongRule = "fail",
    min_mass: float = 0.5,
) -> SlotJudge:
    identity = JudgeIdentity(
        model="fake",
        weights="none",
        engine="fake",
        read=read,
        layout=prompt.LAYOUT,
        template=prompt.TEMPLATE_DIGEST,
        min_mass=min_mass,
        empty_response="scale_min",
        overlong=overlong,
    )
    return SlotJudge(engine, tokenizer, identity, reason_tokens=20)


def question(
    response: str = "Because it is.",
    instruction: str = "Correct\nIt says what is so.",
    choices: tuple[Choice, ...] = SIX,
    task: str = "Why?",
) -> Question:
    parts = (Part(name="task_prompt", content=task), Part(name="response", content=response))
    return Question(
        source="test", evidence=Evidence(parts=parts), instruction=instruction, choices=choices
    )


def ask(judge: SlotJudge, *questions: Question) -> list[Reply]:
    return asyncio.run(judge.answer(questions))


def answered(reply: Reply) -> Answer:
    assert isinstance(reply, Answer), reply
    return reply


def failed(reply: Reply) -> NoAnswer:
    assert isinstance(reply, NoAnswer), reply
    return reply
