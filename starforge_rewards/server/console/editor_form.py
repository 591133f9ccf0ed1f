"""The fields of a draft, with what is wrong beside each. It knows the draft and no registry."""

from collections.abc import Callable, Sequence

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from starforge_rewards.errors import Problem, field_path
from starforge_rewards.server.console.criterion_form import CriterionForm, Field, Loc
from starforge_rewards.server.console.draft import CriterionDraft, Draft
from starforge_rewards.server.console.elements import block, symbol, words

_VISIBILITY = {"private": "Private: you and administrators", "public": "Public: all with a token"}


class Form:
    """Inputs that write into a draft; a field is faulted once it was touched, or a save failed."""

    def __init__(self, draft: Draft, on_change: Callable[[], None]) -> None:
        self._draft, self._on_change = draft, on_change
        self._touched = set[int]()
        self._all = False
        self._rows: list[CriterionForm] = []
        self._plain: dict[str, Field] = {}
        self._about()
        self._scale()
        self._criteria()

    def fault(self, found: Sequence[Problem]) -> None:
        """Show what is wrong, and nothing else any more."""
        fields = self._fields()
        said: dict[Loc, str] = {}
        for problem in found:
            said.setdefault(problem.loc, problem.said)
        for loc, element in fields.items():
            shown = self._all or element.id in self._touched
            element.error = said.get(loc) if shown else None
            element.props["aria-invalid"] = "true" if element.error else "false"
        rest = [one for one in found if one.loc not in fields]
        self._rest.clear()
        for one in rest if self._all else ():
            with self._rest, block("sf-fault", "p").props("role=alert"):
                symbol("error")
                words("span", f"{field_path(one.loc)}: {one.said}")

    def fault_all(self, found: Sequence[Problem]) -> None:
        """As `fault`, for fields that nobody touched too; the first of them gets the focus."""
        self._all = True
        self.fault(found)
        fields = self._fields()
        if first := next((fields[one.loc] for one in found if one.loc in fields), None):
            first.run_method("focus")

    def _fields(self) -> dict[Loc, Field]:
        fields: dict[Loc, Field] = {(k,): v for k, v in self._plain.items()}
        for at, one in enumerate(self._rows):
            fields |= {("criteria", at, *loc): each for loc, each in one.fields.items()}
        return fields

    def _about(self) -> None:
        with block("sf-card", "section"):
            words("h2", "About")
            self._input("description", "Description", area=True)
            said = ui.radio(_VISIBILITY, value=self._draft.visibility, on_change=self._published)
            said.props('aria-label="Who reads it" dense').classes("sf-radio")
            words("p", "The present visibility governs all versions.", "sf-hint")

    def _scale(self) -> None:
        with block("sf-card", "section"):
            words("h2", "Scale")
            with block("sf-fields"):
                self._input("scale_min", "From").classes("sf-short")
                self._input("scale_max", "To").classes("sf-short")
                self._input("levels", "Levels (optional)").classes("sf-medium")
            self._answers = words("p", "", "sf-hint")
        self._tell_answers()

    def _criteria(self) -> None:
        with block("sf-card", "section"):
            words("h2", "Criteria")
            self._rest = block()
            self._area = block()
            ui.button("Add criterion", icon="add", on_click=self._add).props(
                "outline no-caps dense"
            )
        self._lay(self._draft.criteria)

    def _lay(self, criteria: Sequence[CriterionDraft]) -> None:
        self._area.clear()
        with self._area:
            self._rows = [
                CriterionForm(one, (at, len(criteria)), self._draft.labels(), self)
                for at, one in enumerate(criteria)
            ]

    def _input(self, name: str, label: str, area: bool = False) -> Field:
        make = ui.textarea if area else ui.input
        element = make(label, value=getattr(self._draft, name))
        element.props("outlined dense debounce=150" + (" autogrow rows=1" if area else ""))

        def write(event: ValueChangeEventArguments[str | None]) -> None:
            setattr(self._draft, name, event.value or "")
            self.changed(element)
            if name != "description":
                self._rescale()

        element.without_auto_validation().on_value_change(write)
        self._plain[name] = element
        return element

    def _published(self, event: ValueChangeEventArguments[str]) -> None:
        self._draft.visibility = event.value
        self._on_change()

    def _rescale(self) -> None:
        self._tell_answers()
        for one in self._rows:
            one.label(self._draft.labels())
        self._on_change()

    def _tell_answers(self) -> None:
        labels = ", ".join(self._draft.labels())
        self._answers.text = f"A judge answers one of: {labels}" if labels else "Not a scale yet."

    def changed(self, element: Field) -> None:
        """A field was typed into."""
        self._touched.add(element.id)
        self._on_change()

    def _add(self) -> None:
        self._draft.criteria.append(CriterionDraft())
        self._lay(self._draft.criteria)
        self._on_change()
        self._rows[-1].focus()

    def remove(self, at: int) -> None:
        """Take a criterion out."""
        del self._draft.criteria[at]
        self._lay(self._draft.criteria)
        self._on_change()
        if self._rows:
            self._rows[min(at, len(self._rows) - 1)].focus()

    def move(self, at: int, to: int) -> None:
        """Give a criterion another place; the same button of it keeps the focus."""
        self._draft.criteria.insert(to, self._draft.criteria.pop(at))
        self._lay(self._draft.criteria)
        self._on_change()
        self._rows[to].focus("up" if to < at else "down")
