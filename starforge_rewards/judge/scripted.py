"""A function is the judge: for tests of what stands around a judge, yours and ours.

It is no stand-in for a model's judgement. A function that raises is a mistake in a test, so what it
raises goes through as it is and becomes no `NoAnswer`; return one to play a judge that failed.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from starforge_rewards import functions
from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import Common
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.question import Answer, NoAnswer, Question, Reply, chosen

Scripted = Callable[[Question], str | Reply | Awaitable[str | Reply]]

_RULES = Common()


class ScriptedJudge:
    """Answers with what a function returns: a choice's label, or a whole reply."""

    def __init__(
        self,
        function: Scripted,
        *,
        name: str = "scripted",
        rules: Common = _RULES,
        keep: bool = True,
    ) -> None:
        """The judge that `function` is.

        Args:
            function: from a question to one of its labels or to a reply; may be async.
            name: part of the identity, as is the text of the function's module.
            rules: what any judge declares; of it the identity takes `min_mass`, `empty_response`
                and `overlong`.
            keep: keep every question in `asked`, which grows with them.
        """
        self.asked: list[Question] = []
        """Every question so far, in order."""
        self._keep = keep
        self.identity = JudgeIdentity(
            model=name,
            weights="scripted",
            engine="scripted",
            options={"name": name, "source": _source(function)},
            read="text",
            layout="scripted",
            template="scripted",
            min_mass=rules.min_mass,
            empty_response=rules.empty_response,
            overlong=rules.overlong,
        )
        self._function = function

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply for each question, in order; async functions run all at once.

        Raises:
            ExceptionGroup: an async function raised.
            InputError: the function returned something else than a label or a reply.
        """
        if self._keep:
            self.asked += questions
        said = [self._function(question) for question in questions]
        async with asyncio.TaskGroup() as group:
            waiting = {
                index: group.create_task(_awaited(each))
                for index, each in enumerate(said)
                if inspect.isawaitable(each)
            }
        said = [waiting[i].result() if i in waiting else each for i, each in enumerate(said)]
        return [self._reply(q, each) for q, each in zip(questions, said, strict=True)]

    def _reply(self, question: Question, said: object) -> Reply:
        match said:
            case str():
                return chosen(question, said)
            case Answer():
                picked = chosen(question, said.label)  # no number for what is no choice
                return said if isinstance(picked, Answer) else picked
            case NoAnswer():
                return said
        kind = type(said).__name__
        raise InputError(f"{self.identity.model} returned {kind}, not a label or a Reply")


def load_function(named: str) -> Scripted:
    """The function that `module:function` names.

    Raises:
        InputError: it is written otherwise, does not import, or is not there.
    """
    scripted: Scripted = functions.load(named, field="function", kind="function")
    return scripted


def _source(function: Scripted) -> str:
    """Digest of the file that the function is in, so that no run mixes two texts of it."""
    try:
        text = Path(inspect.getsourcefile(function) or "").read_bytes()
    except (OSError, TypeError):  # a callable object, or typed at a prompt
        text = repr(function).encode()
    return hashlib.sha256(text).hexdigest()


async def _awaited(said: Awaitable[str | Reply]) -> str | Reply:
    return await said
