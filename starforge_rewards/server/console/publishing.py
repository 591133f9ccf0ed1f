"""Asks before a rubric becomes public: it is its whole past that others can read then."""

from nicegui import ui

from starforge_rewards.server.console.elements import block, words


async def confirmed(version: int) -> bool:
    """Whether the writer says yes; `version` is the present one, 0 where there is none."""
    with ui.dialog() as dialog, ui.card().classes("sf-dialog"):
        dialog.props("aria-labelledby=publish")
        words("h2", "Make it public?").props("id=publish")
        words("p", "The present visibility governs all versions.")
        with words("p", "Everyone with a token will read "):
            if version > 1:
                words("b", f"versions 1 to {version}, and every later one.")
            else:
                words("b", "every version of it.")
        with block("sf-tools"):
            ui.button("Publish", on_click=lambda: dialog.submit(True)).props("unelevated no-caps")
            ui.button("Keep it private", on_click=lambda: dialog.submit(False)).props(
                "flat no-caps autofocus"
            )
    dialog.open()
    answer = await dialog
    dialog.delete()
    return answer is True
