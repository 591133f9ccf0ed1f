"""One run: what it was, what came of it, and the whole text of every version that it cites."""

import json
from typing import Annotated, NamedTuple

from fastapi import Depends
from nicegui import ui
from pydantic import TypeAdapter, ValidationError

from starforge_rewards.errors import NotFound
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import Current
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.run import Citation, Outcome, RunId, RunRecord
from starforge_rewards.server.console.elements import (
    block,
    cell,
    facts,
    link,
    moment,
    row,
    table,
    tag,
    visibility,
    words,
)
from starforge_rewards.server.console.figures import number
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.run_rows import show_results, show_scores
from starforge_rewards.server.console.session import Visit, Visits
from starforge_rewards.server.console.standard import show_text

_ID: TypeAdapter[str] = TypeAdapter(RunId)
_TOGETHER = 10


class Cited(NamedTuple):
    """A citation and the text that it stands for; None where it cannot be read any more."""

    citation: Citation
    text: Current | None


def _run(visit: Visits, run_id: str) -> RunRecord:
    try:
        return visit.registry.runs.show(_ID.validate_python(run_id))
    except ValidationError:
        raise NotFound(f"no run {run_id!r} that you can read") from None


def cited(registry: Registry, citations: tuple[Citation, ...]) -> list[Cited]:
    """The texts of some citations."""
    return [Cited(one, _text(registry, one)) for one in citations]


def _text(registry: Registry, one: Citation) -> Current | None:
    try:
        return registry.rubrics.show(Ref.parse(one.rubric))
    except NotFound:
        return None


Shown = Annotated[RunRecord, Depends(_run)]


def _first(visit: Visits, run: Shown) -> list[Cited]:
    return cited(visit.registry, run.citations[:_TOGETHER])


def show(visit: Visits, run: Shown, first: Annotated[list[Cited], Depends(_first)]) -> None:
    """The page."""
    with frame(visit, f"Run {run.id}", "/runs"):
        with block("sf-head"), words("h1", "", "sf-ref"):
            words("span", "Run ", "sf-owner")
            words("span", run.id)
        with block("sf-meta"):
            tag(run.role.replace("_", " ") + (f" · {run.runner}" if run.runner else ""), "work")
            tag(run.status, _STATUS[run.status])
            with block(tag="span"):
                words("span", f"by {run.owner}, ")
                moment(run.created_at)
        notice = Notice()
        _outcome(run.outcome)
        _about(run)
        _Citations(visit, run, first, notice)
        with block("sf-card", "section"):
            words("h2", "Rows")
            show_results(visit, run.id, notice)
        with block("sf-card", "section"):
            words("h2", "Scores used")
            show_scores(visit, run.id, notice)


_STATUS = {"running": "pending", "finished": "check_circle", "failed": "error"}


def _outcome(outcome: Outcome | None) -> None:
    with block("sf-card", "section"):
        words("h2", "Outcome")
        if outcome is None:
            words("p", "None recorded yet.", "sf-none")
            return
        facts(
            {
                "Score": number(outcome.score),
                "Normalized": number(outcome.normalized),
                "Rows": str(outcome.rows),
                "Scored": str(outcome.scored),
            }
            | {name: json.dumps(each, ensure_ascii=False) for name, each in outcome.metrics.items()}
        )
        if outcome.unscored:
            with table("Rows without a score", "Cause", "Rows", classes="sf-narrow"):
                for cause, count in sorted(outcome.unscored.items()):
                    with row():
                        cell("Cause", cause)
                        cell("Rows", str(count), "sf-number")


def _about(run: RunRecord) -> None:
    with block("sf-card", "section"):
        words("h2", "Subject and judge")
        judge = run.judge
        model = str(judge.identity.get("model", "")) if judge else "None recorded"
        facts({"Subject": run.subject or number(None), "Judge": model})
        if judge is not None:
            with block(tag="details"):
                words("summary", f"Judge's identity, sha256 {judge.digest[:12]}")
                words("code", judge.digest, "sf-break")
                words("pre", json.dumps(judge.identity, indent=2, ensure_ascii=False), "sf-code")


class _Citations:
    """So many at a time: a run may cite a rubric for each of its rows."""

    def __init__(self, visit: Visit, run: RunRecord, first: list[Cited], notice: Notice) -> None:
        self._visit, self._notice = visit, notice
        self._left = run.citations[len(first) :]
        with block("sf-card", "section"):
            words("h2", "Rubrics cited")
            self._area = block()
            self._more = ui.button("Show more", on_click=self._add).props("flat dense no-caps")
        if not first:
            with self._area:
                words("p", "None.", "sf-none")
        self._fill(first)

    async def _add(self) -> None:
        with self._notice.telling():
            some = self._left[:_TOGETHER]
            found = await self._visit.ask(lambda registry: cited(registry, some))
            self._left = self._left[_TOGETHER:]
            self._fill(found)

    def _fill(self, found: list[Cited]) -> None:
        with self._area:
            for one in found:
                _citation(one)
        self._more.set_visibility(bool(self._left))


def _citation(one: Cited) -> None:
    with block("sf-cited", "article"):
        if one.text is None:
            words("h3", one.citation.rubric)
            words("p", "Its text is not readable to you any more.", "sf-none")
        else:
            with block(tag="h3"):
                link(one.citation.rubric, f"/rubrics/{one.text.ref}")
            with block("sf-meta"):
                visibility(one.text.rubric.get("visibility"))
                moment(one.text.created_at)
            show_text(one.text.rubric, one.citation.rubric)
        words("code", f"sha256 {one.citation.digest[:12]}").props["title"] = one.citation.digest
