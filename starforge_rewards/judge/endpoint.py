"""The judge behind any OpenAI-compatible server: one chat request for each question.

A server tokenises strings, so a control token that stands in the evidence would be read as one:
`neutral` breaks the ones it knows. It covers `<|…|>` and its full-width form, tags in angle
brackets with an underscore (`<start_of_turn>`, `<tool_call>`, `<file_sep>`), `<think>`, `<s>`,
`<bos>`, `<eos>`, `<pad>`, `<unk>`, `<mask>`, `<unused0>`, `<filename>`, `<reponame>`, `[INST]`,
`<<SYS>>` and Mistral's tags in square brackets. It does not cover tokens of another shape, which
nobody can list for a server whose tokenizer is not at hand: `slot.py` encodes material with a
tokenizer that has no control tokens at all, and is the judge for hostile evidence.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from starforge_rewards.errors import InputError
from starforge_rewards.judge import prompt, reply
from starforge_rewards.judge.config import EndpointJudge, Role
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.judge.retry import Failure
from starforge_rewards.judge.wire import Wire
from starforge_rewards.question import Choice, NoAnswer, Question, Reply, weighed

LAYOUT = "endpoint-1"
"""Version of how a request is put together and labels are shown; raise it with any change."""
ASK_LABEL = "Answer with only the label of one possible answer."

_TAGS = "think|s|bos|eos|pad|unk|mask|sop|eop|filename|reponame|unused[0-9]+|[a-z]+(?:_[a-z0-9]+)+"
_WORDS = "INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]+|TOOLS?|THINK|ARGS|CALL_ID|IMG|gMASK"
_CONTROL = re.compile(
    rf"<(?=[|\uff5c])|[|\uff5c](?=>)|<(?=/?(?:{_TAGS})>|<?/?SYS>)|\[(?=/?(?:{_WORDS})\])",
    re.IGNORECASE,
)


def neutral(material: str) -> str:
    """The text with a zero-width space (U+200B) inside whatever looks like a control token."""
    return _CONTROL.sub("\\g<0>\u200b", material)


class Endpoint:
    """Asks a server over one HTTP client, at most `max_in_flight` requests at a time."""

    def __init__(self, config: EndpointJudge, *, role: Role = "evaluation") -> None:
        """The judge that `config` describes; sends nothing yet.

        Raises:
            InputError: the address, the key's variable or `overlong` cannot be used.
        """
        if config.overlong == "head_tail":
            problem = "head_tail needs the model's tokenizer: an endpoint knows only fail"
            raise InputError(problem, field="overlong")
        self.identity = _identity(config)
        self._config = config
        self._deadline: float = getattr(config.deadlines, role)
        self._patient = role == "evaluation"
        self._wire = Wire(config)
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._ids: dict[str, tuple[int, ...]] = {}

    async def aclose(self) -> None:
        """Close the connections; the judge cannot answer after that."""
        await self._wire.aclose()

    async def answer(self, questions: Sequence[Question]) -> list[Reply]:
        """One reply for each question, in order, at the latest when the deadline has passed.

        Raises:
            InputError: with `read: logprobs`, the server tells no token ids, or the model has no
                labels of one token each for a question. That is decided before any is asked.
        """
        until = asyncio.get_running_loop().time() + self._deadline
        bound: dict[tuple[Choice, ...], _Labels | Failure] = {}
        if self._config.read == "logprobs":
            for choices in dict.fromkeys(question.choices for question in questions):
                bound[choices] = await self._bind(choices, until)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._reply(q, bound.get(q.choices), until)) for q in questions
            ]
        return [task.result() for task in tasks]

    async def _reply(
        self, question: Question, labels: "_Labels | Failure | None", until: float
    ) -> Reply:
        if isinstance(labels, Failure):
            return NoAnswer.because(labels.cause, labels.detail)
        try:
            # A pause keeps its slot: the busier the server, the fewer requests it gets.
            async with asyncio.timeout_at(None if self._patient else until), self._slots:
                if self._patient:  # a queue is no failure: the clock runs from here
                    until = asyncio.get_running_loop().time() + self._deadline
                async with asyncio.timeout_at(until):
                    if labels is None:
                        return await self._text(question, until)
                    return await self._weighed(question, labels, until)
        except TimeoutError:
            return NoAnswer.because("timeout", f"no reply within {self._deadline:g} s")

    async def _text(self, question: Question, until: float) -> Reply:
        """The verdict as text; a reply that was cut off is asked for once more, twice as long."""
        most = self._config.max_tokens
        first = await self._written(question, most, until)
        if not isinstance(first, NoAnswer) or first.cause != "truncated":
            return first
        second = await self._written(question, 2 * most, until)
        if isinstance(second, NoAnswer) and second.cause in ("unreachable", "timeout", "overlong"):
            return first
        return second.model_copy(update={"tokens": first.tokens + second.tokens})

    async def _written(self, question: Question, most: int, until: float) -> Reply:
        shown = tuple(choice.label for choice in question.choices)
        body: dict[str, JsonValue] = {"temperature": 0, "seed": question.repeat, "max_tokens": most}
        if self._config.json_schema:
            body["response_format"] = reply.schema(shown)
        user = user_text(question, shown, reply.ask(shown))
        got = await self._wire.chat(body | self._config.body | self._said(user), until)
        if isinstance(got, Failure):
            return NoAnswer.because(got.cause, got.detail)
        choice = got.choices[0]
        message, stop = choice.message, choice.finish_reason
        text, stop = (message.refusal, "refusal") if message.refusal else (message.content, stop)
        return reply.read_text(question, shown, text or "", stop, got.tokens)

    async def _weighed(self, question: Question, labels: "_Labels", until: float) -> Reply:
        """The verdict from the probabilities of the turn's first token."""
        body: dict[str, JsonValue] = {
            "temperature": 0,
            "seed": question.repeat,
            "chat_template_kwargs": {"enable_thinking": False},
        }
        read: dict[str, JsonValue] = {
            "max_tokens": 1,
            "logprobs": True,
            "logprob_token_ids": list(labels.ids),
            "return_tokens_as_token_ids": True,
        }
        user = self._said(user_text(question, labels.shown, ASK_LABEL))
        got = await self._wire.chat(body | self._config.body | read | user, until)
        if isinstance(got, Failure):
            return NoAnswer.because(got.cause, got.detail)
        masses = got.choices[0].masses(labels.ids)
        if masses is None:  # or a batch mate that asked for `logprobs` spoilt the row
            said = "the server did not return every label's probability"
            return NoAnswer.because("off_scale", said, got.tokens)
        return weighed(question, masses, min_mass=self._config.min_mass, tokens=got.tokens)

    def _said(self, user: str) -> dict[str, JsonValue]:
        system: JsonValue = {"role": "system", "content": prompt.SYSTEM}
        turn: JsonValue = {"role": "user", "content": user}
        return {"model": self._config.model, "messages": [system, turn]}

    async def _bind(self, choices: tuple[Choice, ...], until: float) -> "_Labels | Failure":
        """The first alphabet whose labels are one token each, all different."""
        for shown in prompt.alphabets(choices):
            ids: list[tuple[int, ...]] = []
            for label in shown:
                got = await self._tokenized(label, until)
                if isinstance(got, Failure):
                    return got
                ids.append(got)
            if len(set(ids)) == len(ids) and all(len(each) == 1 for each in ids):
                return _Labels(shown, tuple(each[0] for each in ids))
        labels = ", ".join(choice.label for choice in choices)
        problem = f"no labels of one token each in {self._config.model} for the answers {labels}"
        raise InputError(f"{problem}: use text", field="read")

    async def _tokenized(self, label: str, until: float) -> tuple[int, ...] | Failure:
        if label in self._ids:
            return self._ids[label]
        got = await self._wire.tokenize(self._config.model, label, until)
        match got:
            case Failure() if re.match(r"HTTP (404|405|501)\b", got.detail):
                problem = f"logprobs needs vLLM's /tokenize, else use text ({got.detail})"
                raise InputError(problem, field="read")
            case Failure():
                return got
        self._ids[label] = tuple(got.tokens)
        return self._ids[label]


def user_text(question: Question, shown: tuple[str, ...], ask: str) -> str:
    """The user's turn: evidence in tags, criterion, how to answer.

    The evidence comes first, so that a server's prefix cache serves all criteria of a rollout.
    """
    evidence = [
        neutral(piece.text) if piece.material else piece.text
        for piece in prompt.pieces(question.evidence)
    ]
    criterion = prompt.criterion(question.instruction, question.choices, shown)
    return "".join([*evidence, neutral(criterion), "\n\n", ask])


class _Labels(NamedTuple):
    shown: tuple[str, ...]
    ids: tuple[int, ...]


def _identity(config: EndpointJudge) -> JudgeIdentity:
    decoding: dict[str, JsonValue] = {"temperature": 0, "seed": "repeat", "body": config.body}
    if config.read == "text":
        decoding |= {"max_tokens": config.max_tokens, "json_schema": config.json_schema}
    texts = "\0".join([prompt.TEMPLATE_DIGEST, reply.ASK, ASK_LABEL])
    return JudgeIdentity(
        model=config.model,
        weights="unverified",
        engine="endpoint",
        options={"base_url": config.base_url.rstrip("/")},
        read=config.read,
        layout=LAYOUT,
        template=hashlib.sha256(texts.encode()).hexdigest(),
        decoding=decoding,
        min_mass=config.min_mass,
        empty_response=config.empty_response,
        overlong=config.overlong,
    )
