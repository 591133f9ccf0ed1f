"""A process's one connection to a judge: a thread of its own, whatever loops and threads ask.

Trainers call from sync code, from event loops that come and go, and from many threads at once; the
judge lives on one loop that outlasts them all.
"""

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

import httpx

from starforge_rewards.judge.config import AnyJudge, Role
from starforge_rewards.judge.gather import GatheringJudge
from starforge_rewards.judge.open import open_judge
from starforge_rewards.settings import Settings

Result = TypeVar("Result")
Work = Callable[[GatheringJudge], Coroutine[Any, Any, Result]]

_AT_ONCE = 64
"""Connections to servers of the user's."""
_links: dict[tuple[str, Role, int], "Link"] = {}
_linking = threading.Lock()  # two threads that come first make one link


def link_to(config: AnyJudge, role: Role = "training") -> "Link":
    """The connection of this process to a judge; it opens at its first use."""
    key = (config.model_dump_json(), role, os.getpid())  # a fork has none of the threads
    with _linking:
        if key not in _links:
            _links[key] = Link(config, role)
        return _links[key]


class Link:
    """An open judge on a loop of its own. Safe to use from any thread and any loop."""

    def __init__(self, config: AnyJudge, role: Role) -> None:
        self._config, self._role, self._process = config, role, os.getpid()
        self._loop = asyncio.new_event_loop()
        self._opening = asyncio.Lock()  # of several first calls, one opens
        self._stack = AsyncExitStack()
        self._judge: GatheringJudge | None = None
        self._client: httpx.AsyncClient | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="judge")
        self._thread.start()
        self._last = False
        atexit.register(self.close)

    @property
    def under_way(self) -> int:
        """Questions that have no reply yet."""
        return self._judge.under_way if self._judge else 0

    def run(self, work: Work[Result]) -> Result:
        """What `work` makes of the judge; waits in this thread."""
        return asyncio.run_coroutine_threadsafe(self._do(work), self._loop).result()

    async def wait(self, work: Work[Result]) -> Result:
        """What `work` makes of the judge; this loop goes on meanwhile."""
        done = asyncio.run_coroutine_threadsafe(self._do(work), self._loop)
        return await asyncio.wrap_future(done)

    def client(self) -> httpx.AsyncClient:
        """For servers of the user's; one, since to make one takes long. On this link's loop."""
        if self._client is None:
            limits = httpx.Limits(max_connections=_AT_ONCE)
            self._client = httpx.AsyncClient(limits=limits)
            self._stack.push_async_callback(self._client.aclose)
        return self._client

    def close(self) -> None:
        """End what was opened; later calls fail."""
        atexit.unregister(self.close)
        if self._process != os.getpid():
            return  # forked off: the loop and what it opened are the parent's
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        beside = asyncio.all_tasks() - {asyncio.current_task()}
        for task in beside:
            task.cancel()
        for task in beside:
            with suppress(BaseException):  # whatever it ended with, nobody waits for it
                await task
        await self._stack.aclose()

    async def _do(self, work: Work[Result]) -> Result:
        async with self._opening:
            if self._judge is None:
                opened = open_judge(self._config, role=self._role, settings=Settings.read())
                self._judge = GatheringJudge(await self._stack.enter_async_context(opened))
        try:
            return await work(self._judge)
        finally:
            self._end_before_ray()

    def _end_before_ray(self) -> None:
        """Close before Ray does: at a process's end, what was registered last comes first."""
        if not self._last and "ray" in sys.modules:
            self._last = True
            atexit.unregister(self.close)
            atexit.register(self.close)


def _forked() -> None:
    global _linking  # a thread that is not here may hold it
    _linking = threading.Lock()


os.register_at_fork(after_in_child=_forked)
