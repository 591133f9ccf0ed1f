"""The score ledger in a database: every score that a run used, under the text that made it.

A score's id is the digest of recorder, rubric, version, judge, evidence and repeat, and the first
one kept under it is served to that recorder's later runs; nobody is served what another wrote. A
run that used another score, or an incomplete one, keeps its own beside it, which is never served.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from starforge_rewards.errors import InputError
from starforge_rewards.registry import cursor, schema
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import KeyedScore, ScoreKey, ScorePage, User
from starforge_rewards.registry.runs import SqlRuns, Version
from starforge_rewards.registry.upsert import insert_new
from starforge_rewards.rubrics.check import Checker
from starforge_rewards.rubrics.weighted import Rubric, Score

_TABLE = schema.scores
_TOGETHER = 500
"""Keys in one query; SQLite has a limit on parameters."""


class SqlScores:
    """The ledger of one database, for one user (`protocol.Scores`)."""

    def __init__(self, database: Database, user: User) -> None:
        self._database, self._user = database, user
        self._runs = SqlRuns(database, user)

    def find(self, judge: str, keys: Sequence[ScoreKey]) -> dict[ScoreKey, Score]:
        wanted = {_id(self._user.owner, judge, key): key for key in keys}
        found: dict[ScoreKey, Score] = {}
        with self._database.read() as connection:
            for some in _chunks(list(wanted)):
                served = select(_TABLE.c.id, _TABLE.c.body).where(_TABLE.c.served)
                for row in connection.execute(served.where(_TABLE.c.id.in_(some))):
                    found[wanted[row.id]] = _of_ledger(Score.model_validate_json(row.body))
        return found

    def add(self, run_id: str, scores: Mapping[ScoreKey, Score]) -> None:
        with self._database.write() as connection:
            run = self._runs.written(connection, run_id)
            if run.judge_digest is None:
                raise InputError(f"run {run_id!r} names no judge: a score is some judge's")
            cited = self._runs.cited(connection, run_id, {key.rubric for key in scores})
            _refuse_impossible(connection, cited, scores)
            served, own = {}, {}
            for key, score in scores.items():
                row = _row(run, cited[key.rubric], key, score)
                if score.unanswered:  # a later run may have it whole
                    row = _beside(row, run_id)
                    own[row["id"]] = row
                else:
                    served[row["id"]] = row
            if insert_new(connection, _TABLE, list(served.values())) < len(served):
                for score_id in _others(connection, served):
                    row = _beside(served.pop(score_id), run_id)
                    own[row["id"]] = row
            insert_new(connection, _TABLE, list(own.values()))
            links = [{"run_id": run_id, "score_id": used} for used in (*served, *own)]
            insert_new(connection, schema.run_scores, links)

    def of_run(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> ScorePage:
        rubrics, links = schema.rubrics, schema.run_scores
        found = (
            select(_TABLE, rubrics.c.owner, rubrics.c.name)
            .join(links, links.c.score_id == _TABLE.c.id)
            .join(rubrics, rubrics.c.id == _TABLE.c.rubric_id)
            .where(links.c.run_id == run_id, links.c.score_id > _after(cursor))
            .order_by(links.c.score_id)
            .limit(limit + 1)
        )
        with self._database.read() as connection:
            self._runs.visible(connection, run_id)
            rows = connection.execute(found).all()
        shown = rows[:limit]
        return ScorePage(
            items=tuple(_keyed(row) for row in shown),
            next=_cursor(shown[-1].id) if len(rows) > limit else None,
        )


def _id(recorder: str, judge: str, key: ScoreKey) -> bytes:
    text = f"{recorder}\n{key.rubric}\n{judge}\n{key.evidence}\n{key.repeat}"
    return hashlib.sha256(text.encode()).digest()


def _row(run: Any, of: Version, key: ScoreKey, score: Score) -> dict[str, Any]:
    return {
        "id": _id(run.owner, run.judge_digest, key),
        "rubric_id": of.rubric_id,
        "version": of.version,
        "judge": run.judge_digest,
        "evidence": key.evidence,
        "repeat": key.repeat,
        "served": True,
        "total": score.total,
        "body": score.model_dump_json(),
    }


def _refuse_impossible(
    connection: Connection, cited: Mapping[str, Version], scores: Mapping[ScoreKey, Score]
) -> None:
    checkers = {text: _checker_of(connection, of) for text, of in cited.items()}
    for key, score in scores.items():
        if (wrong := checkers[key.rubric].impossible(score)) is not None:
            raise InputError(f"no score of {key.rubric}: {wrong}")


def _checker_of(connection: Connection, of: Version) -> Checker:
    table = schema.revisions
    found = select(table.c.body).where(
        table.c.rubric_id == of.rubric_id, table.c.version == of.version
    )
    return _checker(connection.execute(found).scalar_one())


@lru_cache(maxsize=256)
def _checker(body: str) -> Checker:
    return Checker(Rubric.model_validate_json(body))


def _beside(row: dict[str, Any], run_id: str) -> dict[str, Any]:
    """The same for this run alone, under an id that is its own content's too."""
    text = f"{run_id}\n{_plain(row['body']).model_dump_json()}"
    own = hashlib.sha256(row["id"] + text.encode()).digest()
    return row | {"id": own, "served": False}


def _others(connection: Connection, served: Mapping[bytes, dict[str, Any]]) -> list[bytes]:
    """The ids under which another score was kept before."""
    others = []
    for some in _chunks(list(served)):
        held = select(_TABLE.c.id, _TABLE.c.body).where(_TABLE.c.id.in_(some))
        for row in connection.execute(held):
            ours = served[row.id]["body"]
            if row.body != ours and _plain(row.body) != _plain(ours):
                others.append(row.id)
    return others


def _plain(body: str) -> Score:
    """Without where each answer came from."""
    return _of_ledger(Score.model_validate_json(body))


def _of_ledger(score: Score) -> Score:
    criteria = {
        name: each.model_copy(update={"origin": "ledger"}) for name, each in score.criteria.items()
    }
    return score.model_copy(update={"criteria": criteria})


def _keyed(row: Any) -> KeyedScore:
    rubric = f"{row.owner}/{row.name}@{row.version}"
    return KeyedScore(
        key=ScoreKey(rubric=rubric, evidence=row.evidence, repeat=row.repeat),
        score=Score.model_validate_json(row.body),
    )


def _cursor(score_id: bytes) -> str:
    return cursor.encode((score_id.hex(),))


def _after(given: str | None) -> bytes:
    if given is None:
        return b""
    try:
        return bytes.fromhex(cursor.decode(given, 1)[0])
    except ValueError:
        said = "is no cursor of these scores: begin without one"
        raise InputError(said, field="cursor") from None


def _chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(items), _TOGETHER):
        yield items[start : start + _TOGETHER]
