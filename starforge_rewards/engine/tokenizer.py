"""Text to token ids for one model, with hostile text kept apart from the chat template's own.

`trusted` knows the model's control tokens; `material` is a second tokenizer that knows none, so
that a rollout which contains `<|im_end|>` cannot close its turn. `add_special_tokens=False` alone
would not do that.
"""

import json
import os
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it announces that torch may be missing

import tokenizers
import transformers

from starforge_rewards.errors import EngineFailed

_PLACEHOLDER = "\ue000evidence\ue000"  # private use: no template contains it
_CLOCK = "1 January 2026"
"""Templates that print today's date always print this one, so that a prompt never changes."""


@dataclass(frozen=True)
class Frame:
    """The chat template around the user's turn, as token ids."""

    head: tuple[int, ...]
    """System message and the start of the user's turn."""
    tail: tuple[int, ...]
    """End of the user's turn and the start of the assistant's, outside any thinking."""


class ChatTokenizer:
    """One model's tokenizer and chat template."""

    def __init__(self, model: str, revision: str | None = None) -> None:
        try:
            self._chat: Any = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
        except (OSError, ValueError) as error:
            raise EngineFailed(f"the tokenizer of {model!r} cannot be loaded: {error}") from error
        if not getattr(self._chat, "is_fast", False):
            raise EngineFailed(f"{model!r} has no fast tokenizer: evidence cannot be kept apart")
        if not self._chat.chat_template:
            raise EngineFailed(f"{model!r} has no chat template: choose an instruction-tuned model")
        plain = json.loads(self._chat.backend_tokenizer.to_str())
        added = {t["content"]: t["id"] for t in plain["added_tokens"] if not _blank(t["content"])}
        self.added = frozenset(added.values())
        plain["added_tokens"] = []
        plain["post_processor"] = None  # it would add a start token by its id
        plain["truncation"] = plain["padding"] = None  # some files carry what they were saved with
        _unlearn(plain["model"], added.keys())
        self._plain = tokenizers.Tokenizer.from_str(json.dumps(plain))

    def trusted(self, text: str) -> list[int]:
        """Our own words: control tokens of the model are read as such."""
        return list(self._chat.encode(text, add_special_tokens=False))

    def material(self, text: str) -> list[int]:
        """Other people's words: never a control token.

        Raises:
            ValueError: the tokenizer made an added token of it all the same.
        """
        ids = self._plain.encode(text, add_special_tokens=False).ids
        if not self.added.isdisjoint(ids):
            raise ValueError("the material holds a token that the model reads as control")
        return list(ids)

    def label_ids(self, slot: str, labels: tuple[str, ...]) -> list[int] | None:
        """The one token that each label is after the slot's text; None where one of them is not."""
        stem = self.trusted(slot)
        found: list[int] = []
        for label in labels:
            whole = self.trusted(slot + label)
            if whole[:-1] != stem or whole[-1] in self.added:
                return None
            found.append(whole[-1])
        return found if len(set(found)) == len(found) else None

    def frame(self, system: str) -> Frame:
        """The template's pieces around a user's turn, with this system message."""
        turns = [
            {"role": "system", "content": system},
            {"role": "user", "content": _PLACEHOLDER},
        ]
        text = self._rendered(turns)
        if text is None or system not in text:  # it refuses a system turn, or drops it
            text = self._rendered([{"role": "user", "content": f"{system}\n\n{_PLACEHOLDER}"}])
        head, placeholder, tail = (text or "").partition(_PLACEHOLDER)
        if not placeholder or _PLACEHOLDER in tail:
            raise EngineFailed("the chat template does not show the user's turn exactly once")
        if tail.rfind("<think>") > tail.rfind("</think>"):
            tail += "\n</think>\n\n"
        return Frame(head=tuple(self.trusted(head)), tail=tuple(self.trusted(tail)))

    def _rendered(self, turns: list[dict[str, str]]) -> str | None:
        try:
            return str(
                self._chat.apply_chat_template(
                    turns,
                    tokenize=False,
                    add_generation_prompt=True,
                    enable_thinking=False,
                    date_string=_CLOCK,
                    strftime_now=lambda _format: _CLOCK,
                )
            )
        except Exception:  # noqa: BLE001 - a template is other people's code and raises what it likes
            return None


def _blank(content: str) -> bool:
    """Whether an added token is white space: some models have such for runs of it."""
    return not content.replace("\u2581", " ").strip()


def _unlearn(model: dict[str, Any], added: AbstractSet[str]) -> None:
    """Take out of a BPE model what could build an added token out of ordinary text."""
    if model["type"] != "BPE":
        return
    pairs = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    model["merges"] = [
        [left, right] for left, right in pairs if added.isdisjoint((left, right, left + right))
    ]
    for content in added:
        if content != model["unk_token"]:
            model["vocab"].pop(content, None)
