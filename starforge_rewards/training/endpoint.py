"""A verifier that is a server of the user's: a rollout in, `{"reward": number}` out."""

import asyncio
from collections.abc import Sequence

import httpx
from pydantic import ValidationError

from starforge_rewards.conversation import Record
from starforge_rewards.training.environment import EndpointVerifier
from starforge_rewards.training.reward import Item, Part
from starforge_rewards.training.verify import Asking, as_number

_PAUSE = 0.5
"""Seconds before the second attempt; doubled for each further one."""


class _Answer(Record):
    reward: object


class ByEndpoint:
    """One request for each rollout, tried again where that may help."""

    def __init__(self, config: EndpointVerifier, name: str) -> None:
        self.name, self.weight = name, config.weight
        self._config = config

    async def verify(self, items: Sequence[Item], asking: Asking) -> list[Part]:
        client = asking.client()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(client, item)) for item in items]
        return [task.result() for task in tasks]

    async def _one(self, client: httpx.AsyncClient, item: Item) -> Part:
        body = item.row.rollout(item.response).model_dump_json(exclude_none=True)
        said = ""
        for attempt in range(self._config.attempts):
            if attempt:
                await asyncio.sleep(_PAUSE * 2 ** (attempt - 1))
            try:
                response = await self._post(client, body)
            except httpx.HTTPError as error:
                said = f"{type(error).__name__}: {error}"
                continue
            if response.is_success:
                return self._read(response)
            said = f"HTTP {response.status_code}"
            if response.status_code < 500 and response.status_code not in (408, 429):
                break
        return self._failed(said)

    async def _post(self, client: httpx.AsyncClient, body: str) -> httpx.Response:
        return await client.post(
            self._config.url,
            content=body,
            headers={"Content-Type": "application/json"},
            timeout=httpx.Timeout(self._config.timeout, pool=None),  # a turn is not its time
        )

    def _read(self, response: httpx.Response) -> Part:
        try:
            reward = _Answer.model_validate_json(response.content).reward
        except ValidationError:
            return self._failed(f"answered no reward: {response.text[:100]!r}")
        if (number := as_number(reward)) is None:
            return self._failed(f"answered {reward!r:.100}, no finite number, as reward")
        return Part(self.name, self.weight, number)

    def _failed(self, said: str) -> Part:
        detail = f"{self._config.url}: {said}"
        return Part(self.name, self.weight, None, "endpoint_failed", detail)
