"""Every version with its whole text, newest first, and what any two of them differ in."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends
from nicegui import ui

from starforge_rewards.registry.records import Revision
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.server.console.compare import show_diff
from starforge_rewards.server.console.elements import block, moment, tag, visibility, words
from starforge_rewards.server.console.rubric import Shown, named, rubric_frame
from starforge_rewards.server.console.session import HOME, Visits
from starforge_rewards.server.console.standard import show_text

_TOGETHER = 20


def _revisions(visit: Visits, ref: Annotated[Ref, Depends(named)]) -> Sequence[Revision]:
    return visit.registry.rubrics.revisions(ref)


def show(
    visit: Visits,
    current: Shown,
    revisions: Annotated[Sequence[Revision], Depends(_revisions)],
    before: int | None = None,
    after: int | None = None,
) -> None:
    """The page; its address may name two versions to compare."""
    with rubric_frame(visit, current, "Revisions"):
        if len(revisions) > 1:
            _Compared(revisions, before, after)
        _Texts(revisions)


class _Compared:
    def __init__(
        self, revisions: Sequence[Revision], before: int | None, after: int | None
    ) -> None:
        self._by_version = {one.version: one for one in revisions}
        versions = list(self._by_version)
        with block("sf-card", "section").props("aria-labelledby=compare"):
            words("h2", "Compare").props("id=compare")
            with block("sf-tools"):
                self._before = self._choice("Before", before, versions[1])
                words("span", "with")
                self._after = self._choice("After", after, versions[0])
            self._area = block().props("aria-live=polite")
        self._fill()

    def _choice(self, label: str, asked: int | None, otherwise: int) -> ui.select:
        versions = list(self._by_version)
        chosen = asked if asked in self._by_version else otherwise
        choice = ui.select(versions, label=label, value=chosen, on_change=self._choose)
        choice.props("outlined dense options-dense").classes("sf-short")
        return choice

    def _choose(self) -> None:
        self._fill()
        query = f"before={self._before.value}&after={self._after.value}"
        one = self._by_version[self._after.value]
        path = f"{HOME}/rubrics/{one.owner}/{one.name}/revisions"
        ui.navigate.history.replace(f"{path}?{query}")

    def _fill(self) -> None:
        self._area.clear()
        with self._area:
            show_diff(self._by_version[self._before.value], self._by_version[self._after.value])


class _Texts:
    """So many at a time: a rubric may have thousands of versions."""

    def __init__(self, revisions: Sequence[Revision]) -> None:
        self._left = list(revisions)
        self._area = block()
        self._more = ui.button("Show older versions", on_click=self._add)
        self._more.props("flat dense no-caps")
        self._add()

    def _add(self) -> None:
        shown, self._left = self._left[:_TOGETHER], self._left[_TOGETHER:]
        with self._area:
            for one in shown:
                _text(one)
        self._more.set_visibility(bool(self._left))


def _text(one: Revision) -> None:
    with block("sf-card", "section").props(f"id=v{one.version} aria-labelledby=h{one.version}"):
        words("h2", f"Version {one.version}").props(f"id=h{one.version}")
        with block("sf-meta"):
            visibility(one.rubric.get("visibility"))
            tag(one.author, "person")
            moment(one.created_at)
            words("code", f"sha256 {one.digest[:12]}").props["title"] = one.digest
        show_text(one.rubric, f"version {one.version}")
