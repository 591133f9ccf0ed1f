"""How a rubric is named: `<owner>/<name>` or, pinned, `<owner>/<name>@<version>`."""

import hashlib
import json
import re
from functools import cached_property
from typing import Literal, Self

from pydantic import JsonValue

from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import InputError
from starforge_rewards.rubrics.weighted import Poser, Rubric

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")
_RESERVED_OWNERS = {"resolve"}


class Ref(Frozen):
    """An owner's rubric, at one version where it is pinned."""

    owner: str
    name: str
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `owner/name` or `owner/name@version`.

        Raises:
            InputError: a bare name, a path, a reserved owner or a version that is not a number ≥ 1.
        """
        path, at, version = text.partition("@")
        owner, slash, name = path.partition("/")
        if not slash:
            raise InputError(f"{text!r} is a bare name: write <owner>/<name>")
        check_segment("owner", owner, text)
        check_segment("name", name, text)
        if at and not _VERSION.fullmatch(version):
            raise InputError(f"{text!r}: a version is a whole number from 1, as in {path}@1")
        return cls(owner=owner, name=name, version=int(version) if at else None)

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}" + (f"@{self.version}" if self.version else "")


class ResolvedRubric(Frozen):
    """A rubric as a job uses it: resolved once, pinned for the job's life."""

    ref: Ref | None
    """None for a rubric given inline or as a file: the digest is then its only identity."""
    rubric: Rubric
    digest: str

    @classmethod
    def pin(cls, rubric: Rubric, ref: Ref | None = None) -> "ResolvedRubric":
        # Without a second look at the rubric: rows may bring thousands.
        return cls.model_construct(ref=ref, rubric=rubric, digest=digest(rubric))

    @cached_property
    def poser(self) -> Poser:
        """Poses this rubric; made once for the job."""
        return Poser(self.rubric, str(self))

    @property
    def unversioned(self) -> bool:
        """True where no registry keeps this text under a number."""
        return self.ref is None or self.ref.version is None

    def __str__(self) -> str:
        return str(self.ref) if self.ref else f"inline {self.digest[:12]}"


def check_segment(what: Literal["owner", "name"], segment: str, text: str) -> None:
    """Whether a segment of a reference may stand there; `text` is what was written.

    Raises:
        InputError: it may not.
    """
    if not _SEGMENT.fullmatch(segment):
        said = f"{text!r}: the {what} must match [A-Za-z0-9][A-Za-z0-9._-]*, at most 128 characters"
        raise InputError(said)
    if what == "owner" and segment in _RESERVED_OWNERS:
        raise InputError(f"{text!r}: {segment!r} is reserved and owns no rubric")


def digest(rubric: Rubric) -> str:
    """Sha256 over what decides a score: scale, levels and criteria; not description, visibility."""
    content: dict[str, JsonValue] = rubric.model_dump(exclude={"description", "visibility"})
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
