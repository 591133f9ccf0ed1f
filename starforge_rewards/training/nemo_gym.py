"""NeMo Gym: a resources server whose `/verify` scores by a rubric.

A failed judgement raises `JudgeError`, of which Gym makes a masked sample. Nothing is kept between
calls, so rollouts can be verified again.
"""

from typing import Any, ClassVar

from nemo_gym.base_resources_server import (  # type: ignore[import-not-found]
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)
from nemo_gym.judge import JudgeError  # type: ignore[import-not-found]
from pydantic import ConfigDict

from starforge_rewards.training.calls import beside, item_of, known, reward_of
from starforge_rewards.training.reward import Item


class RubricServerConfig(BaseResourcesServerConfig):  # type: ignore[misc]
    """What a server's YAML says besides Gym's own keys."""

    REVERIFY_MODE: ClassVar[Any] = ReverifyMode.STATELESS
    environment: str
    """A shipped name or a folder."""
    judge: str | None = None
    """In place of the environment's, such as `pool:team`."""
    run_id: str | None = None


class RubricVerifyRequest(BaseVerifyRequest):  # type: ignore[misc]
    """Gym's body with the task's own fields: `reference`, `context` and so on."""

    model_config = ConfigDict(extra="allow")


class RubricVerifyResponse(BaseVerifyResponse):  # type: ignore[misc]
    """The body with its reward, and each criterion's value as a field of its own."""

    model_config = ConfigDict(extra="allow")


class RubricResourcesServer(SimpleResourcesServer):  # type: ignore[misc]
    """Start it as any other resources server: `RubricResourcesServer.run_webserver()`."""

    config: RubricServerConfig

    async def verify(self, body: RubricVerifyRequest) -> RubricVerifyResponse:
        """The reward of one rollout.

        Raises:
            JudgeError: the judge gave no score.
        """
        said = body.model_dump()
        config = self.config
        reward = reward_of(config.environment, config.judge, config.run_id)
        (found,) = await reward.ascore([item(said)])
        if found.value is None:
            raise JudgeError(f"{found.cause}: {found.detail}")
        logged = known(beside(found, reward.criteria))
        return RubricVerifyResponse(**{**said, **logged, "reward": found.value})


def item(said: dict[str, Any]) -> Item:
    """A verify request as a rollout: the Responses format's items as turns."""
    prompt = said["responses_create_params"]["input"]
    turns = prompt if isinstance(prompt, str) else _turns(prompt)
    return item_of(turns, _turns(said["response"]["output"]), said)


def _turns(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for one in items:
        match one.get("type") or "message":
            case "message":
                turns.append({"role": one["role"], "content": one["content"]})
            case "function_call":
                call = {"name": one["name"], "arguments": one["arguments"]}
                turns.append({"role": "assistant", "tool_calls": [call]})
            case "function_call_output":
                turns.append({"role": "tool", "content": one["output"]})
    return turns  # reasoning is not what was answered
