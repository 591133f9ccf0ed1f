"""ms-swift 4.6.0: an asynchronous outcome reward, and where trainers look for it by name."""

from typing import Any


class AsyncORM:
    def __init__(self, args: Any = None, **kwargs: Any) -> None:
        self.args = args

    async def __call__(self, **kwargs: Any) -> list[float]:
        raise NotImplementedError


orms: dict[str, type[AsyncORM]] = {}
