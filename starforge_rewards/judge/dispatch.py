"""Sends questions to replicas: by priority, near their prefix, within limits and deadlines.

A group of questions goes to the replica that its task prompt hashes to, and to the next choice
where that one is full. A lost replica's questions are sent elsewhere a bounded number of times.
"""

import asyncio
import hashlib
import heapq
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from starforge_rewards.errors import StarforgeError
from starforge_rewards.question import Choice, NoAnswer, Question, Reply

BATCH = 64
"""Most questions in one call of a replica; a call costs about 1.3 ms, measured on two cores."""

_MOMENT = 2.0
"""Seconds; a replica that is slower to say that it is up joins when it does."""


class Lost(Exception):
    """The replica is gone; `permanent` where it will not come back."""

    def __init__(self, said: object, *, permanent: bool) -> None:
        super().__init__(str(said))
        self.permanent = permanent


class Replica(Protocol):
    """One engine, as the front reaches it."""

    name: str

    async def answer(self, questions: Sequence[Question], priority: int) -> list[Reply]:
        """Replies in order; raises `Lost`."""
        ...

    async def labels(self, choices: tuple[Choice, ...]) -> str:
        """How a question with these choices is shown; raises `Lost`."""
        ...

    async def ready(self) -> int:
        """Process id, once it can answer; raises `Lost`, or what its start raised."""
        ...


@dataclass
class Lane:
    """A replica and how it stands."""

    replica: Replica
    in_flight: int = 0
    answered: int = 0
    up: bool = False
    """Only once it said so: a call of an actor that is not placed yet would wait without end."""
    gone: bool = False


@dataclass(order=True)
class _Job:
    priority: int
    number: int
    questions: list[Question] = field(compare=False)
    replies: asyncio.Future[list[Reply]] = field(compare=False)
    sends: int = field(default=0, compare=False)

    def settle(self, replies: list[Reply]) -> None:
        if not self.replies.done():  # its asker may have left
            self.replies.set_result(replies)

    def fail(self, error: Exception) -> None:
        if not self.replies.done():
            self.replies.set_exception(error)


class Dispatcher:
    """Sends questions to replicas: by priority, near their prefix, within each one's limit."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        *,
        max_in_flight: int,
        resends: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.lanes = [Lane(replica) for replica in replicas]
        self._max_in_flight, self._resends, self._sleep = max_in_flight, resends, sleep
        self._queue: list[_Job] = []
        self._numbers = itertools.count()
        self._progress = 0.0
        self._moment: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # a task that nobody holds may vanish

    @property
    def queued(self) -> int:
        return sum(len(job.questions) for job in self._queue if not job.replies.done())

    async def answer(
        self,
        questions: Sequence[Question],
        *,
        priority: int,
        deadline: float,
        patient: bool = False,
    ) -> list[Reply]:
        """One reply per question, in order; what has none after `deadline` seconds is `timeout`.

        Args:
            questions: what is asked.
            priority: lower numbers are served first.
            deadline: seconds from now, or where `patient` since any replica last answered.
            patient: whether waiting for others counts.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + deadline
        await self.begin()
        replies: list[Reply] = [NoAnswer.because("timeout", f"no reply within {deadline:g} s")]
        replies *= len(questions)
        jobs: list[tuple[list[int], _Job]] = []
        for places in _batches(questions):
            asked = [questions[place] for place in places]
            job = _Job(priority, next(self._numbers), asked, loop.create_future())
            jobs.append((places, job))
            heapq.heappush(self._queue, job)
        self._pump()
        try:
            for places, job in jobs:
                while not job.replies.done() and loop.time() < ends:
                    await asyncio.wait([job.replies], timeout=ends - loop.time())
                    ends = max(ends, self._progress + deadline) if patient else ends
                if job.replies.done():
                    for place, reply in zip(places, job.replies.result(), strict=True):
                        replies[place] = reply
        finally:
            for _, job in jobs:
                job.replies.cancel()  # nobody waits for it any more
        return replies

    def _pump(self) -> None:
        """Start what can be started; called whenever something came or ended."""
        calls: dict[int, list[_Job]] = {}
        while self._queue:
            job = self._queue[0]
            if job.replies.done():
                heapq.heappop(self._queue)
            elif all(lane.gone for lane in self.lanes):
                self._give_up(job, "every replica is gone")
            elif (lane := self._choose(job)) is not None:
                heapq.heappop(self._queue)
                lane.in_flight += len(job.questions)
                call = calls.setdefault(id(lane), [])
                if sum(len(other.questions) for other in call) + len(job.questions) > BATCH:
                    self._spawn(self._send(call.copy(), lane))
                    call.clear()
                call.append(job)
            else:
                break
        for lane in self.lanes:
            if call := calls.get(id(lane), []):
                self._spawn(self._send(call, lane))

    def _choose(self, job: _Job) -> Lane | None:
        route = job.questions[0].evidence.route

        def rank(lane: Lane) -> bytes:  # rendezvous: a lost replica moves only its own prompts
            return hashlib.blake2b(route, key=lane.replica.name.encode()[:64]).digest()

        for lane in sorted((lane for lane in self.lanes if lane.up), key=rank):
            if not lane.in_flight or lane.in_flight + len(job.questions) <= self._max_in_flight:
                return lane
        return None

    async def _send(self, jobs: list[_Job], lane: Lane) -> None:
        """One call of a replica for several jobs."""
        questions = [question for job in jobs for question in job.questions]
        try:
            replies = await lane.replica.answer(questions, jobs[0].priority)
        except Lost as lost:
            self._mark_lost(lane, permanent=lost.permanent)
            for job in jobs:
                self._resend(job)
        except Exception as error:  # noqa: BLE001 - the asker must hear of it, or waits for ever
            for job in jobs:
                job.fail(error)
        else:
            lane.answered += len(replies)
            self._progress = asyncio.get_running_loop().time()
            rest = iter(replies)
            for job in jobs:
                job.settle(list(itertools.islice(rest, len(job.questions))))
        finally:
            lane.in_flight -= len(questions)
            self._pump()

    def _resend(self, job: _Job) -> None:
        job.sends += 1
        if job.sends > self._resends:
            self._give_up(job, f"lost with {job.sends} replicas one after another")
        else:
            heapq.heappush(self._queue, job)

    def _give_up(self, job: _Job, why: str) -> None:
        job.settle([NoAnswer.because("unreachable", why)] * len(job.questions))

    async def begin(self) -> None:
        """Ask all replicas whether they are up, and give them one moment to say so."""
        if self._moment is None:
            self._moment = self._spawn(self._first_moment())
        await asyncio.shield(self._moment)

    async def _first_moment(self) -> None:
        asks = [self._spawn(self._await(lane)) for lane in self.lanes]
        await asyncio.wait(asks, timeout=_MOMENT)

    async def check(self) -> None:
        """Ask all replicas that seem up whether they are, and give them a moment to say so."""
        await self.begin()
        asks = [self._spawn(self._check(lane)) for lane in self.lanes if lane.up]
        if asks:
            await asyncio.wait(asks, timeout=_MOMENT)

    async def _check(self, lane: Lane) -> None:
        try:
            await lane.replica.ready()
        except Lost as lost:
            self._mark_lost(lane, permanent=lost.permanent)
        except StarforgeError:
            self._mark_lost(lane, permanent=True)

    def _mark_lost(self, lane: Lane, *, permanent: bool) -> None:
        lane.gone = lane.gone or permanent
        if lane.up:
            lane.up = False
            self._spawn(self._await(lane))

    async def _await(self, lane: Lane) -> None:
        """Ask a replica until it is up, or gone for good."""
        pause = 0.1
        while not lane.gone:
            try:
                await lane.replica.ready()
            except Lost as lost:
                lane.gone = lost.permanent
            except StarforgeError:  # its engine does not start any more
                lane.gone = True
            else:
                lane.up = True
                break
            await self._sleep(pause)
            pause = min(pause * 2, 5.0)
        self._pump()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _batches(questions: Sequence[Question]) -> list[list[int]]:
    """The questions' places, gathered by route and cut to what one call carries."""
    groups: dict[bytes, list[int]] = {}
    for place, question in enumerate(questions):
        groups.setdefault(question.evidence.route, []).append(place)
    return [
        group[start : start + BATCH]
        for group in groups.values()
        for start in range(0, len(group), BATCH)
    ]
