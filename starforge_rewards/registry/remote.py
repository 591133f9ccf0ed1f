"""The registry of a server, over HTTP: what a job on another machine resolves and records with.

Large writes go in batches; a batch that arrives twice is kept once.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, JsonValue, SecretStr, ValidationError

from starforge_rewards.conversation import Record
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import (
    Current,
    KeyedScore,
    Listing,
    Revision,
    RubricQuery,
    RunListing,
    RunQuery,
    ScoreKey,
    ScorePage,
    Written,
)
from starforge_rewards.registry.remote_server import Call, Patience, Server
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric, Score
from starforge_rewards.run import ResultRow, Run, RunRecord, Usage

_MOST_ITEMS = 500
_MOST_BYTES = 900_000
_PAGE = 200
"""Rows that the server gives at once."""


@contextmanager
def remote_registry(
    url: str, token: SecretStr | None, patience: Patience | None = None
) -> Iterator[Registry]:
    """What a token's owner may read and write on the server at a URL, until the block ends.

    Args:
        url: of the server, such as `http://127.0.0.1:8400`.
        token: what `starforge token create` printed.
        patience: how long to go on where the server is away.

    Raises:
        InputError: no such URL, or no such token.
    """
    server = Server(url, token, patience)
    try:
        yield Registry(RemoteRubrics(server), RemoteRuns(server), RemoteScores(server))
    finally:
        server.close()


class RemoteRubrics:
    """The rubrics of a server (`protocol.Rubrics`)."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def resolve(self, text: str) -> ResolvedRubric:
        ref = Ref.parse(text)
        held = self._server.ask(Call("GET", "/api/rubrics/resolve", {"ref": str(ref)}), _Resolved)
        try:
            rubric = Rubric.model_validate(held.rubric)  # strictly: each key may change a score
        except ValidationError as error:
            raise InputError.of(error, file=held.ref, data=held.rubric) from None
        return ResolvedRubric(ref=Ref.parse(held.ref), rubric=rubric, digest=held.digest)

    def put(
        self,
        ref: Ref,
        rubric: Rubric,
        *,
        expected_version: int | None = None,
        write_key: str | None = None,
    ) -> Written:
        if ref.version is not None:
            raise InputError(f"{ref}: a write makes the next version: leave out @{ref.version}")
        body: dict[str, JsonValue] = rubric.model_dump(mode="json", exclude_unset=True)
        if expected_version is not None:
            body["expected_version"] = expected_version
        key = write_key or str(uuid4())  # one for all tries
        return self._server.ask(Call("PUT", _path(ref), {}, json.dumps(body), key), Written)

    def show(self, ref: Ref) -> Current:
        params = {"version": ref.version} if ref.version is not None else {}
        return self._server.ask(Call("GET", _path(ref), params), Current)

    def list(self, query: RubricQuery) -> Listing:
        return self._server.ask(Call("GET", "/api/rubrics", _params(query)), Listing)

    def revisions(self, ref: Ref) -> Sequence[Revision]:
        call = Call("GET", _path(ref, "/revisions"))
        return self._server.ask(call, _Revisions).revisions

    def usage(self, ref: Ref) -> Sequence[Usage]:
        found = self._server.ask(Call("GET", _path(ref, "/usage")), _Usages).usage
        return [usage for usage in found if ref.version in (None, usage.version)]

    def archive(self, ref: Ref, archived: bool) -> Current:
        body = json.dumps({"archived": archived})
        return self._server.ask(Call("PUT", _path(ref, "/archived"), {}, body), Current)


class RemoteRuns:
    """The runs of a server (`protocol.Runs`)."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def put(self, run_id: str, run: Run) -> RunRecord:
        path = _run_path(run_id)
        *before, last = list(_batches(run.citations, len(run.citations))) or [[]]
        for citations in before:
            self._server.ask(Call("PUT", path, {}, _citing(run, citations)), RunRecord)
        return self._server.ask(Call("PUT", path, {}, _citing(run, last)), RunRecord)

    def show(self, run_id: str) -> RunRecord:
        return self._server.ask(Call("GET", _run_path(run_id)), RunRecord)

    def list(self, query: RunQuery) -> RunListing:
        return self._server.ask(Call("GET", "/api/runs", _params(query)), RunListing)

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        path = _run_path(run_id, "/results")
        for batch in _batches(row.model_dump_json() for row in rows):
            self._server.ask(Call("POST", path, {}, _body(results=batch)), _Kept)

    def results(self, run_id: str, *, after: int = -1, limit: int = 200) -> Sequence[ResultRow]:
        path, rows = _run_path(run_id, "/results"), list[ResultRow]()
        while len(rows) < limit:
            wanted = min(limit - len(rows), _PAGE)
            call = Call("GET", path, {"after": after, "limit": wanted})
            page = self._server.ask(call, _Results).results
            rows += page
            if len(page) < wanted:
                break
            after = page[-1].position
        return rows


class RemoteScores:
    """The score ledger of a server (`protocol.Scores`)."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def find(self, judge: str, keys: Sequence[ScoreKey]) -> dict[ScoreKey, Score]:
        found: dict[ScoreKey, Score] = {}
        for batch in _batches(key.model_dump_json() for key in dict.fromkeys(keys)):
            body = _body(judge=json.dumps(judge), keys=batch)
            page = self._server.ask(Call("POST", "/api/scores/find", {}, body), _Found)
            found |= {keyed.key: keyed.score for keyed in page.scores}
        return found

    def add(self, run_id: str, scores: Mapping[ScoreKey, Score]) -> None:
        path = _run_path(run_id, "/scores")
        keyed = (KeyedScore(key=key, score=score) for key, score in scores.items())
        for batch in _batches(one.model_dump_json() for one in keyed):
            self._server.ask(Call("POST", path, {}, _body(scores=batch)), _Kept)

    def of_run(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> ScorePage:
        params: dict[str, str | int] = {"limit": min(limit, _PAGE)}
        if cursor is not None:
            params["cursor"] = cursor
        return self._server.ask(Call("GET", _run_path(run_id, "/scores"), params), ScorePage)


class _Resolved(Record):
    ref: str
    digest: str
    rubric: dict[str, JsonValue]


class _Revisions(Record):
    revisions: tuple[Revision, ...]


class _Usages(Record):
    usage: tuple[Usage, ...]


class _Results(Record):
    results: tuple[ResultRow, ...]


class _Found(Record):
    scores: tuple[KeyedScore, ...]


class _Kept(Record):
    kept: int


def _path(ref: Ref, below: str = "") -> str:
    return f"/api/rubrics/{_segment(ref.owner)}/{_segment(ref.name)}{below}"


def _run_path(run_id: str, below: str = "") -> str:
    return f"/api/runs/{_segment(run_id)}{below}"


def _segment(text: str) -> str:
    """One segment of a path, and no way out of it."""
    if text in {"", ".", ".."}:
        raise NotFound(f"{text!r} names nothing")
    return quote(text, safe="")


def _params(query: BaseModel) -> dict[str, str | int]:
    """What a query says that is not said anyway."""
    said: dict[str, str | int] = query.model_dump(exclude_defaults=True)
    return said


def _citing(run: Run, citations: Sequence[str]) -> str:
    return run.model_copy(update={"citations": tuple(citations)}).model_dump_json()


def _body(**parts: str | Sequence[str]) -> str:
    """A JSON object of JSON texts, or of lists of them."""
    texts = (
        f'"{key}":{part}' if isinstance(part, str) else f'"{key}":[{",".join(part)}]'
        for key, part in parts.items()
    )
    return "{" + ",".join(texts) + "}"


def _batches(texts: Iterable[str], most: int = _MOST_ITEMS) -> Iterator[list[str]]:
    """Texts in their order, as many together as one body holds; one that is larger goes alone."""
    batch, size = list[str](), 0
    for text in texts:
        length = len(text.encode()) + 1
        if batch and (len(batch) >= most or size + length > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
