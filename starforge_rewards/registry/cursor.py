"""A page's cursor: the sort key of its last line, so that a deep page costs what the first does."""

import base64
import binascii
import json
from collections.abc import Sequence

from starforge_rewards.errors import InputError


def encode(key: Sequence[str]) -> str:
    """Text that stands for a key, in a URL too."""
    return base64.urlsafe_b64encode(json.dumps(list(key)).encode()).decode().rstrip("=")


def decode(cursor: str, length: int) -> tuple[str, ...]:
    """The key of `length` texts that a cursor stands for.

    Raises:
        InputError: it is none of ours.
    """
    try:
        key = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        key = None
    if not isinstance(key, list) or len(key) != length or not all(map(_keepable, key)):
        raise InputError("is no cursor of this listing: begin without one", field="cursor")
    return tuple(key)


def _keepable(part: object) -> bool:
    """A database refuses NUL and lone surrogates."""
    return isinstance(part, str) and "\0" not in part and part.isprintable()
