"""The fields of one criterion, and the buttons that move it or take it out."""

from collections.abc import Callable, Sequence
from typing import Protocol

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement
from nicegui.events import ValueChangeEventArguments

from starforge_rewards.server.console.draft import CriterionDraft
from starforge_rewards.server.console.elements import block, words

Loc = tuple[int | str, ...]
Field = ValidationElement[str | None]


class Among(Protocol):
    """The form that holds all criteria."""

    def changed(self, element: Field) -> None: ...
    def remove(self, at: int) -> None: ...
    def move(self, at: int, to: int) -> None: ...


class CriterionForm:
    """One criterion of a form."""

    def __init__(
        self, draft: CriterionDraft, place: tuple[int, int], labels: Sequence[str], form: Among
    ) -> None:
        """Draws it.

        Args:
            draft: what is written into.
            place: its index, and how many there are.
            labels: the levels that may have an anchor.
            form: what is told.
        """
        self._draft, self._form = draft, form
        self._at, self._of = place
        self._open = bool(draft.anchors)
        self.fields: dict[Loc, Field] = {}
        """By their place in the criterion."""
        self._moves: dict[str, ui.button] = {}
        with block("sf-criterion", "fieldset"):
            words("legend", f"Criterion {self._at + 1}")
            with block("sf-fields"):
                self._plain("name", "Name").classes("sf-grow")
                self._plain("weight", "Weight").classes("sf-short")
                self._buttons()
            self._plain("description", "Instruction to a careful reader", area=True)
            self._anchors = block(tag="details").classes("sf-levels")
            self._anchors.props["open"] = self._open
        self.label(labels)

    def focus(self, what: str = "name") -> None:
        """Give the focus to its name, or to the button `up` or `down`."""
        button = self._moves.get(what)
        if button is not None and button.enabled:
            # It was made just now: the browser draws it first.
            step = f"requestAnimationFrame(() => getHtmlElement({button.id}).focus())"
            button.client.run_javascript(step)
        else:
            self.fields[("name",)].run_method("focus")

    def label(self, labels: Sequence[str]) -> None:
        """The scale has these levels; what was said of others is kept, to be seen and cleared."""
        for loc in [loc for loc in self.fields if loc[0] == "anchors"]:
            del self.fields[loc]
        kept = [one for one, said in self._draft.anchors.items() if said and one not in labels]
        self._anchors.clear()
        with self._anchors:
            words("summary", "What single levels mean")
            with block("sf-level-fields"):
                for label in (*labels, *kept):
                    self._anchor(label)

    def _anchor(self, label: str) -> None:
        def write(event: ValueChangeEventArguments[str | None]) -> None:
            self._draft.anchors[label] = event.value or ""
            self._form.changed(element)

        value = self._draft.anchors.get(label, "")
        element = self._typed(ui.input(f"Level {label}", value=value), write)
        self.fields[("anchors", label)] = element

    def _plain(self, name: str, label: str, area: bool = False) -> Field:
        def write(event: ValueChangeEventArguments[str | None]) -> None:
            setattr(self._draft, name, event.value or "")
            self._form.changed(element)

        make = ui.textarea if area else ui.input
        element = self._typed(make(label, value=getattr(self._draft, name)), write)
        if area:
            element.props("autogrow rows=1")
        self.fields[(name,)] = element
        return element

    def _typed(self, element: Field, write: Callable[..., None]) -> Field:
        element.props("outlined dense debounce=150")
        element.without_auto_validation()  # the whole draft is checked, and not one field
        element.on_value_change(write)
        return element

    def _buttons(self) -> None:
        at = self._at
        with block("sf-buttons"):
            self._moves["up"] = self._button("arrow_upward", "Move up", lambda: self._move(at - 1))
            self._moves["down"] = self._button(
                "arrow_downward", "Move down", lambda: self._move(at + 1)
            )
            out = self._button("delete_outline", "Remove", lambda: self._form.remove(at))
        self._moves["up"].set_enabled(at > 0)
        self._moves["down"].set_enabled(at < self._of - 1)
        out.set_enabled(self._of > 1)

    def _move(self, to: int) -> None:
        self._form.move(self._at, to)

    def _button(self, icon: str, what: str, press: Callable[[], None]) -> ui.button:
        button = ui.button(icon=icon, on_click=press, color=None).props("flat dense round size=sm")
        said = f"{what} criterion {self._at + 1}"
        button.props["aria-label"] = button.props["title"] = said
        return button
