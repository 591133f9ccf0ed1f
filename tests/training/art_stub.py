"""ART 0.5.23: a trajectory and its group."""

from typing import Any

from pydantic import BaseModel


class Trajectory(BaseModel):
    messages_and_choices: list[dict[str, Any]]
    additional_histories: list[Any] = []
    reward: float = 0.0
    metrics: dict[str, float | int | bool] = {}
    metadata: dict[str, float | int | str | bool | None] = {}

    def messages(self) -> list[dict[str, Any]]:
        return self.messages_and_choices


class TrajectoryGroup(BaseModel):
    trajectories: list[Trajectory]
    metadata: dict[str, Any] = {}

    def __init__(self, trajectories: list[Trajectory] | None = None, **more: Any) -> None:
        super().__init__(trajectories=trajectories or [], **more)
