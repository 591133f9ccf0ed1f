"""Every page and its address, in one place."""

from nicegui import ui

from starforge_rewards.server.console import editor, revisions, rubric, rubrics, run, runs, usage

_KEPT = 900.0
"""Seconds for which an editor that lost its connection is kept, with what was typed into it."""


def register() -> None:
    """Put the pages on NiceGUI's app."""
    ui.page("/rubrics")(rubrics.show)
    ui.page("/rubrics/new", reconnect_timeout=_KEPT)(editor.show_new)
    ui.page("/rubrics/{owner}/{name}")(rubric.show)
    ui.page("/rubrics/{owner}/{name}/edit", reconnect_timeout=_KEPT)(editor.show)
    ui.page("/rubrics/{owner}/{name}/revisions")(revisions.show)
    ui.page("/rubrics/{owner}/{name}/usage")(usage.show)
    ui.page("/runs")(runs.show)
    ui.page("/runs/{run_id}")(run.show)
