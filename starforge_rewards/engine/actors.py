"""Objects in Ray actors: host, place, find, restart. The only file that imports ray.

Engines live only in actors and leave with them. A call never waits for a restart: a lost actor is
an `ActorLost` at once, and the caller decides where to send its work.
"""

import inspect
import logging
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from starforge_rewards.errors import EngineFailed, NotFound, StarforgeError

_log = logging.getLogger(__name__)

ENGINE_PRIORITY = ("RAY_worker_niceness", "0")
"""For clusters that we start: by default Ray runs its workers after everything else (nice 15)."""


class ActorLost(Exception):
    """The actor did not answer because it is gone; `permanent` where Ray will not restart it."""

    def __init__(self, name: str, *, permanent: bool) -> None:
        super().__init__(f"actor {name} is lost")
        self.permanent = permanent


@dataclass(frozen=True)
class Placement:
    """What an actor asks of the cluster."""

    cpus: float = 0
    gpus: float = 0
    resources: dict[str, float] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    here: bool = False
    """On this process's own node, while that has room."""
    concurrency: int = 1000
    """Calls under way in the actor at a time; all are coroutines of one loop."""


@dataclass(frozen=True)
class Address:
    """Where hosted objects live. Picklable; holds no live connection."""

    namespace: str
    cluster: str | None = None
    detached: bool = False
    """True: what is hosted here outlives this process."""


class Host:
    """The actor: builds one object and forwards calls to it."""

    def __init__(self, factory: Callable[..., object], args: tuple[object, ...]) -> None:
        self._failed: StarforgeError | None = None
        try:
            self._object = factory(*args)
        except StarforgeError as error:  # told by ready(); raised here, Ray would wrap it in text
            self._failed = error

    async def ready(self) -> int:
        """The process id, once the object is built."""
        if self._failed:
            raise self._failed
        return os.getpid()

    async def call(self, method: str, args: tuple[object, ...]) -> object:
        await self.ready()
        try:
            result = getattr(self._object, method)(*args)
            return await result if inspect.isawaitable(result) else result
        except* EngineFailed:
            # The engine is dead and will not come back: leave, so that Ray starts a new one.
            _log.exception("engine died; leaving")
            os._exit(1)


@dataclass(frozen=True)
class Hosted:
    """A hosted object, as its callers hold it."""

    name: str
    handle: Any

    async def call(self, method: str, *args: object) -> Any:
        """Await a method of the object.

        Raises:
            ActorLost: the actor is gone or restarting.
        """
        return await self._reply(self.handle.call.remote(method, args))

    async def ready(self) -> int:
        """The actor's process id, once its object is built.

        Raises:
            ActorLost: the actor is gone or restarting.
            StarforgeError: what the object's factory raised.
        """
        return int(await self._reply(self.handle.ready.remote()))

    async def _reply(self, call: Any) -> Any:
        try:
            return await call
        except RayActorError as error:
            permanent = isinstance(error, ActorDiedError)
            raise ActorLost(self.name, permanent=permanent) from error
        except RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, StarforgeError) else error from None


def join(address: Address) -> bool:
    """Connect this process to a cluster; True where that started one, which ends with the process.

    Raises:
        EngineFailed: there is no cluster at the address.
    """
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"namespace": address.namespace, "log_to_driver": False}
    own = address.cluster is None and not os.environ.get("RAY_ADDRESS")
    if own:
        os.environ.setdefault(*ENGINE_PRIORITY)
        options |= {"include_dashboard": False, "address": "local"}
    elif address.cluster == "auto" and not os.environ.get("RAY_ADDRESS") and not _head_runs():
        raise EngineFailed("no Ray cluster runs on this machine: start one with `ray start --head`")
    else:
        options["address"] = address.cluster
    try:
        ray.init(logging_level=logging.ERROR, **options)
    except (ConnectionError, RayError, ValueError, RuntimeError) as error:
        raise EngineFailed(f"no Ray cluster at {address.cluster!r}: {error}") from error
    return own


def _head_runs() -> bool:
    """Whether the cluster that `ray start` noted last is there.

    Ray's own `auto` would else join any cluster that it detects, also one of another process that
    ends with it.
    """
    folder = Path(os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()) / "ray"
    try:
        host, _, port = (folder / "ray_current_cluster").read_text().strip().rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
    except (OSError, ValueError):
        return False
    return True


def leave() -> None:
    """Disconnect this process; a cluster that it started ends."""
    ray.shutdown()


def host(
    name: str,
    factory: Callable[..., object],
    args: tuple[object, ...],
    *,
    at: Address,
    placement: Placement,
) -> Hosted:
    """Start an actor that builds and holds `factory(*args)`; returns before it is built.

    Raises:
        EngineFailed: the name is taken.
    """
    options: dict[str, Any] = {
        "name": name,
        "namespace": at.namespace,
        "lifetime": "detached" if at.detached else None,
        "num_cpus": placement.cpus,
        "num_gpus": placement.gpus,
        "resources": placement.resources,
        "runtime_env": {"env_vars": placement.env},
        "max_restarts": placement.restarts,
        "max_task_retries": 0,
        "max_concurrency": placement.concurrency,
    }
    if placement.here:
        node = ray.get_runtime_context().get_node_id()
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True)
    try:
        return Hosted(name, ray.remote(Host).options(**options).remote(factory, args))
    except ValueError as error:
        raise EngineFailed(f"actor {name!r} could not be started: {error}") from error


def find(name: str, at: Address) -> Hosted:
    """A named actor of the cluster.

    Raises:
        NotFound: there is none of this name.
    """
    join(at)
    try:
        return Hosted(name, ray.get_actor(name, namespace=at.namespace))
    except ValueError:
        raise NotFound(f"no actor {name!r} in namespace {at.namespace!r}") from None


def names(at: Address) -> list[str]:
    """All named actors of the namespace that live."""
    join(at)
    listed = ray.util.list_named_actors(all_namespaces=True)
    return sorted(a["name"] for a in listed if a["namespace"] == at.namespace)


def stop(hosted: Hosted) -> None:
    """End an actor for good; its child processes end with it. Those of a Ray that is gone are."""
    if not ray.is_initialized():
        return  # and `ray.kill` would start another
    ray.kill(hosted.handle, no_restart=True)
