"""NeMo Gym 0.7.0: what a resources server is made of, without its web server."""

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class ReverifyMode(StrEnum):
    STATELESS = "stateless"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


class BaseResourcesServerConfig(BaseModel):
    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNKNOWN
    name: str = "starforge"


class BaseVerifyRequest(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    responses_create_params: dict[str, Any]
    response: dict[str, Any]


class BaseVerifyResponse(BaseVerifyRequest):
    reward: float
    mask_sample: bool = False
    failure_kind: str | None = None
    failure_reason: str | None = None


class SimpleResourcesServer(BaseModel):
    config: BaseResourcesServerConfig

    async def verify(self, body: Any) -> Any:
        raise NotImplementedError
