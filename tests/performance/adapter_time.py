"""What an adapter adds to plain `RubricReward`, with a judge that answers at once.

A batch adapter has 1,000 completions in one call, as `RubricReward` has of the same rollouts; what
is compared is processor time, since nobody waits for this judge. An adapter that is called for each
rollout is shown beside the same 1,000 calls of `RubricReward`, 64 under way at a time, and by its
milliseconds of wall time for one call: that is no ratio.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from starforge_rewards.training.calls import item_of
from starforge_rewards.training.openrlhf import reward_func_of
from starforge_rewards.training.reward import Item
from starforge_rewards.training.rubric_reward import RubricReward
from starforge_rewards.training.slime import rm
from starforge_rewards.training.verl import compute_score, compute_scores
from tests.performance import workload
from tests.performance.ratio import Ratio, alternate, at_most, seconds
from tests.training import conformance  # the stubs of trainers that are not installed

from starforge_rewards.training.areal import reward_fn_of  # isort: skip
from starforge_rewards.training.ms_swift import orm_of  # isort: skip

_AT_ONCE = 64
_PAIRS, _QUICK_PAIRS = 9, 3


def measure(*, quick: bool) -> Iterator[Ratio]:
    count = 200 if quick else 1000
    pairs = _QUICK_PAIRS if quick else _PAIRS
    with _reward() as reward:
        said = [
            (str(one.prompt), str(one.response))
            for one in workload.rollouts(count, seed=0, group=8)
        ]
        items = [item_of(prompt, response) for prompt, response in said]
        turns = [item_of([_turn("user", a)], [_turn("assistant", b)]) for a, b in said]
        for name, ask in _batch_adapters(reward, said).items():
            same = turns if name == "ms-swift ORM" else items
            ask()  # what is made once
            yield Ratio(
                what=f"{name}, one call / RubricReward.numbers, processor time",
                size=f"{count} completions",
                pairs=alternate(
                    lambda ask=ask: _processor(ask),  # type: ignore[misc]
                    lambda same=same: _processor(lambda: reward.numbers(same)),  # type: ignore[misc]
                    pairs,
                ),
                target=at_most(1.2),
            )
        for name, each in _call_adapters(reward, said).items():
            took = [seconds(each) for _ in range(pairs)]
            plain = [seconds(lambda: _plain_calls(reward, items)) for _ in range(pairs)]
            yield Ratio(
                what=f"{name}, a call for each / RubricReward likewise",
                size=f"{count} calls, {_AT_ONCE} at once",
                pairs=tuple(a / b for a, b in zip(took, plain, strict=True)),
            )
            yield Ratio(
                what=f"{name}: milliseconds for one call",
                size=f"{count} calls, {_AT_ONCE} at once",
                pairs=tuple(one / count * 1000 for one in took),
                target=at_most(2),
            )


@contextmanager
def _reward() -> Iterator[RubricReward]:
    with tempfile.TemporaryDirectory() as folder:
        made = conformance.environment(Path(folder))
        file = made / "environment.yaml"
        said = json.loads(file.read_text())
        said["judge"]["function"] = "tests.performance.scripted_lowest:judge"
        file.write_text(json.dumps(said))
        yield RubricReward(made)


def _batch_adapters(
    reward: RubricReward, said: Sequence[tuple[str, str]]
) -> dict[str, Callable[[], object]]:
    prompts, responses = [one for one, _ in said], [two for _, two in said]
    extras = [{"prompt": prompt} for prompt in prompts]
    nothing = [None] * len(said)
    queries = [prompt + response for prompt, response in said]
    reward_func = reward_func_of(reward)
    args = SimpleNamespace(sf_environment=reward)
    samples = [_sample(prompt, response) for prompt, response in said]
    orm = orm_of(reward)()
    turns = [[_turn("user", prompt), _turn("assistant", response)] for prompt, response in said]
    return {
        "verl compute_scores": lambda: compute_scores(
            prompts, responses, nothing, extras, environment=reward
        ),
        "OpenRLHF reward_func": lambda: reward_func(queries, prompts, nothing),
        "slime rm": lambda: asyncio.run(rm(args, samples)),
        "ms-swift ORM": lambda: conformance.run(orm(responses, messages=turns)),
    }


def _call_adapters(
    reward: RubricReward, said: Sequence[tuple[str, str]]
) -> dict[str, Callable[[], object]]:
    reward_func = reward_func_of(reward)
    reward_fn = reward_fn_of(reward)
    args = SimpleNamespace(sf_environment=reward)

    def verl(prompt: str, response: str) -> Coroutine[Any, Any, object]:
        return compute_score("data", response, None, {"prompt": prompt}, environment=reward)

    def slime(prompt: str, response: str) -> Coroutine[Any, Any, object]:
        return rm(args, _sample(prompt, response))

    def openrlhf(one: tuple[str, str]) -> object:
        return reward_func(["".join(one)], [one[0]], [None])

    def areal(one: tuple[str, str]) -> object:
        return reward_fn(one[0], one[1], [], [])

    return {
        "verl compute_score": lambda: asyncio.run(_awaited(verl, said)),
        "slime rm": lambda: asyncio.run(_awaited(slime, said)),
        "OpenRLHF reward_func": lambda: _threaded(openrlhf, said),
        "AReaL reward_fn": lambda: _threaded(areal, said),
    }


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _processor(work: Callable[[], object]) -> float:
    """Seconds of processor time, of all threads; without garbage collection, as in `timeit`."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def _sample(prompt: str, response: str) -> SimpleNamespace:
    return SimpleNamespace(prompt=prompt, response=response, label=None, metadata=None)


def _plain_calls(reward: RubricReward, items: Sequence[Item]) -> None:
    async def each(item: Item) -> object:
        return await reward.anumbers([item])

    asyncio.run(_awaited(each, [(item,) for item in items]))


async def _awaited(
    ask: Callable[..., Coroutine[Any, Any, object]], said: Sequence[tuple[Any, ...]]
) -> None:
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(given: tuple[Any, ...]) -> None:
        async with free:
            await ask(*given)

    async with asyncio.TaskGroup() as group:
        for given in said:
            group.create_task(one(given))


def _threaded(ask: Callable[[Any], object], said: Sequence[Any]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(ask, said))
