"""A verdict that a judge wrote as text: how it is asked for and how it is read. Pure.

The whole reply must be the verdict: one JSON object, or one code fence that holds just that.
Nothing is searched for in prose and nothing has a default, so `[[5]]`, `GRADE: C` and a "no" inside
"know" are all `unparseable`. Why the judge stopped is looked at before what it wrote: a reply that
was cut off is `truncated` even where what is left of it would parse.
"""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from starforge_rewards.question import Cause, NoAnswer, Question, Reply, Tokens, chosen

ASK = (
    "Reply with one JSON object and nothing else, the reason first:\n"
    '{{"reason": "why, in one or two sentences", "verdict": "the answer"}}\n'
    "The verdict is exactly one of: {labels}"
)
STOPS: dict[str, Cause] = {
    "length": "truncated",
    "content_filter": "refused",
    "refusal": "refused",
    "abort": "unreachable",
    "error": "unreachable",
}
"""What a reason to stop means, whatever the text says; any other lets the text speak."""

_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\r?\n[ \t]*```", re.DOTALL | re.IGNORECASE)
_NO_TOKENS = Tokens()


def ask(shown: Sequence[str]) -> str:
    """The text that asks for the verdict, to stand last in the prompt."""
    labels = ", ".join(json.dumps(label, ensure_ascii=False) for label in shown)
    return ASK.format(labels=labels)


def schema(shown: Sequence[str]) -> dict[str, JsonValue]:
    """The `response_format` of a verdict: the reason first, so that it comes before the verdict."""
    properties: dict[str, JsonValue] = {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": list(shown)},
    }
    verdict: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": verdict},
    }


def read_text(
    question: Question,
    shown: Sequence[str],
    text: str,
    finish_reason: str | None,
    tokens: Tokens = _NO_TOKENS,
) -> Reply:
    """The reply that a text is.

    Args:
        question: what was asked.
        shown: the labels that the judge saw, in the order of the choices.
        text: all that the judge wrote; never the prompt.
        finish_reason: why it stopped, in the words of an OpenAI-compatible server.
        tokens: what it cost.

    Returns:
        The answer, or a `NoAnswer`: `truncated` or `refused` by the stop reason, `off_scale` for a
        well-formed verdict that is none of the labels, else `unparseable`.
    """
    if cause := STOPS.get(finish_reason or ""):
        return NoAnswer.because(cause, f"stopped by {finish_reason}: {snippet(text)}", tokens)
    try:
        said = _said(text)
    except (ValueError, RecursionError) as error:  # brackets nested by the thousand
        problem = snippet(str(error))[:80]
        return NoAnswer.because("unparseable", f"{problem}: {snippet(text)}", tokens)
    if said.verdict not in shown:
        detail = f"{snippet(said.verdict)!r} is not one of the labels"
        return NoAnswer.because("off_scale", detail, tokens)
    label = question.choices[list(shown).index(said.verdict)].label
    return chosen(question, label, reason=said.reason, tokens=tokens)


def snippet(text: str) -> str:
    """At most 200 characters that any file can hold: lone surrogates are written as escapes."""
    return text.strip()[:200].encode(errors="backslashreplace").decode()


class _Said(NamedTuple):
    reason: str
    verdict: str


def _said(text: str) -> _Said:
    """Raises ValueError where the text is anything else than one verdict."""
    text = text.strip()
    fenced = _FENCE.fullmatch(text)
    said = json.loads(
        fenced[1] if fenced else text, object_pairs_hook=_distinct, parse_constant=_refused
    )
    if not isinstance(said, dict) or said.keys() != {"reason", "verdict"}:
        raise ValueError("not an object of just reason and verdict")
    reason, verdict = said["reason"], said["verdict"]
    if not isinstance(reason, str):
        raise ValueError("the reason is not a text")
    if isinstance(verdict, bool) or not isinstance(verdict, str | int):
        raise ValueError("the verdict is neither a text nor an integer")
    reason.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
    return _Said(reason, str(verdict))


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key stands twice")
    return mapping


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
