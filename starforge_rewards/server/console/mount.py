"""Mounts the pages on the server's app. NiceGUI keeps one app per process, so this is done once."""

import atexit
import os
import shutil
import tempfile

from fastapi import FastAPI

from starforge_rewards.server.console import login
from starforge_rewards.server.console.guard import Guard
from starforge_rewards.server.console.session import HOME

_RECONNECT = 30.0
"""Seconds for which a page that lost its connection is kept."""


def mount(app: FastAPI) -> None:
    """Have an app of `create_app` serve the console under `/console`; before it starts."""
    _keep_nothing()
    app.include_router(login.router)  # before the mount, which takes every path below
    from nicegui import app as nicegui_app  # late: importing it opens its storage
    from nicegui import ui

    from starforge_rewards.server.console import failure, pages

    nicegui_app.state.shared = app.state.shared
    failure.install(nicegui_app)
    pages.register()
    ui.run_with(
        app,
        mount_path=HOME,
        title="Starforge Rewards",
        language="en-US",
        tailwind=False,
        reconnect_timeout=_RECONNECT,
        show_welcome_message=False,
    )
    app.add_middleware(Guard)


def _keep_nothing() -> None:
    """NiceGUI wants a folder; it is ours alone, and goes with the process."""
    folder = tempfile.mkdtemp(prefix="starforge-console-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NICEGUI_STORAGE_PATH"] = folder
