"""Writing a rubric: the form, advice while one types, and the save, which loses nobody's edit.

A save says which version it was made from. Where another has come first, what was typed stays.
"""

import re
from typing import Annotated

from fastapi import Depends
from nicegui import ui

from starforge_rewards.errors import Conflict, Forbidden, InputError
from starforge_rewards.registry.records import Current, Written
from starforge_rewards.rubrics.lint import lint
from starforge_rewards.rubrics.ref import Ref, check_segment
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.server.console.draft import Draft
from starforge_rewards.server.console.editor_form import Form
from starforge_rewards.server.console.elements import block, link, symbol, words
from starforge_rewards.server.console.frame import frame
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.publishing import confirmed
from starforge_rewards.server.console.rubric import Shown
from starforge_rewards.server.console.session import HOME, Visit, Visits
from starforge_rewards.server.console.tryit import TryIt

_CRITERION = re.compile(r"criteria\[([0-9]+)\]\.?(.*)")


def show_new(visit: Visits) -> None:
    """The page for a rubric that is not there yet."""
    with frame(visit, "New rubric", "/rubrics"):
        _Editor(visit, None)


def _writable(visit: Visits, current: Shown) -> Current:
    if current.owner != visit.user.owner:
        raise Forbidden(f"{current.owner}/{current.name} is not yours: only its owner writes it")
    return current


def show(visit: Visits, current: Annotated[Current, Depends(_writable)]) -> None:
    """The page for an edit."""
    with frame(visit, f"Edit {current.owner}/{current.name}", "/rubrics"):
        _Editor(visit, current)


class _Editor:
    def __init__(self, visit: Visit, current: Current | None) -> None:
        self._visit = visit
        self._version = current.version if current else 0
        self._before = Rubric.model_validate(current.rubric) if current else None
        self._draft = Draft.of(self._before) if self._before else Draft()
        with block("sf-head"):
            self._title = words("h1", "", "sf-ref")
            self._text = link("Show its text", "", "sf-quiet")
        with block("sf-editor") as self._whole:
            with block("sf-column"):
                self._name = self._name_field(current)
                self._form = Form(self._draft, self._check)
                with block("sf-save"):  # stays in sight, and so does what came of a save
                    self._notice = Notice()
                    with block("sf-saving"):
                        save = ui.button("Save", icon="save", on_click=self._save)
                        save.props("unelevated no-caps")
                        self._state = words("span", "", "sf-hint")
            with block("sf-column sf-beside"):
                with block("sf-card", "section").props("aria-label=Advice"):
                    words("h2", "Advice")
                    self._advice = block().props("aria-live=polite")
                TryIt(visit, self._draft)
        self._saving = False
        self._entitle()
        self._check()

    def _name_field(self, current: Current | None) -> ui.input:
        field = ui.input(f"Name, under {self._visit.user.owner}/", validation=_misnamed)
        field.props("outlined dense debounce=150").without_auto_validation()
        field.on_value_change(lambda: field.validate())
        if current is not None:
            field.value = current.name
            field.set_visibility(False)
        return field

    @property
    def _ref(self) -> Ref:
        return Ref(owner=self._visit.user.owner, name=self._name.value or "")

    def _entitle(self) -> None:
        ref, known = self._ref, self._version > 0
        self._title.text = f"Edit {ref}" if known else "New rubric"
        self._text.props["href"] = f"{HOME}/rubrics/{ref}"
        self._text.set_visibility(known)
        self._state.text = (
            f"From version {self._version}" if known else "Its first save makes version 1"
        )

    def _check(self) -> None:
        """What is wrong beside the fields, and advice where nothing is."""
        checked = self._draft.check()
        self._form.fault(() if isinstance(checked, Rubric) else checked)
        self._advice.clear()
        with self._advice:
            if not isinstance(checked, Rubric):
                words("p", "Advice comes once every field can be read.", "sf-none")
                return
            for one in (found := lint(checked, self._before)):
                with block("sf-advice", "p"):
                    symbol("lightbulb")
                    words("b", _place(one.field))
                    words("span", one.said)
            if not found:
                words("p", "Nothing to advise.", "sf-none")

    async def _save(self) -> None:
        """Once at a time: a second press would meet the first one's version."""
        if self._saving:
            return
        self._saving = True
        try:
            await self._save_now()
        finally:
            self._saving = False

    async def _save_now(self) -> None:
        with self._notice.telling():
            checked = self._draft.check()
            if not self._name.validate():
                self._name.run_method("focus")
                self._notice.wrong("Not saved: the name cannot be used.")
            elif not isinstance(checked, Rubric):
                self._form.fault_all(checked)
                fields = "1 field" if len(checked) == 1 else f"{len(checked)} fields"
                self._notice.wrong(f"Not saved: {fields} cannot be used.")
            elif await self._may_be_read(checked):
                await self._write(checked)

    async def _may_be_read(self, rubric: Rubric) -> bool:
        """Whether the writer wants it public, where it was not."""
        was_public = self._before is not None and self._before.visibility == "public"
        if rubric.visibility != "public" or was_public:
            return True
        return await confirmed(self._version)

    async def _write(self, rubric: Rubric) -> None:
        ref, expected = self._ref, self._version
        try:
            written = await self._visit.ask(
                lambda registry: registry.rubrics.put(ref, rubric, expected_version=expected)
            )
        except Conflict:
            await self._conflict(ref)
            return
        self._saved(written, rubric)

    def _saved(self, written: Written, rubric: Rubric) -> None:
        if written.created:
            self._name.set_visibility(False)
            ui.navigate.history.replace(f"{HOME}/rubrics/{self._ref}/edit")
        self._version, self._before = written.version, rubric
        self._entitle()
        self._check()
        if written.changed:
            self._notice.done(f"Saved as version {written.version}.")
        else:
            self._notice.done(f"Nothing changed: still version {written.version}.")

    async def _conflict(self, ref: Ref) -> None:
        current = await self._visit.ask(lambda registry: registry.rubrics.show(ref))
        if self._version == 0:
            self._notice.wrong(f"Not saved: {ref} is there already. Choose another name.")
            return
        said = f"Not saved: version {current.version} came first. What you typed is kept here."
        with self._notice.wrong(said), block("sf-tools"):
            asked = f"before={self._version}&after={current.version}"
            see = link("See what changed", f"/rubrics/{ref}/revisions?{asked}")
            see.props("target=_blank")
            onto = f"Save mine as version {current.version + 1}"
            ui.button(onto, on_click=lambda: self._save_onto(current)).props(
                "outline no-caps dense"
            )

    async def _save_onto(self, current: Current) -> None:
        self._version, self._before = current.version, Rubric.model_validate(current.rubric)
        self._entitle()
        with self._whole:  # the button that was pressed goes with its message
            await self._save()


def _place(field: str) -> str:
    """`criteria[0].weight` as the form has it."""
    found = _CRITERION.fullmatch(field)
    if not found:
        return field.capitalize()
    return f"Criterion {int(found[1]) + 1}{', ' if found[2] else ''}{found[2]}"


def _misnamed(name: str | None) -> str | None:
    try:
        check_segment("name", name or "", name or "")
    except InputError as error:
        return error.problem
    return None
