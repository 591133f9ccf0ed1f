"""reward-kit 0.4.1: a result, with its validity."""

from typing import Any

from pydantic import BaseModel


class Message(BaseModel):
    role: str
    content: str | list[dict[str, Any]] | None = ""


class MetricResult(BaseModel):
    is_score_valid: bool = True
    score: float
    reason: str


class EvaluateResult(BaseModel):
    score: float
    is_score_valid: bool = True
    reason: str | None = None
    metrics: dict[str, MetricResult] = {}
    error: str | None = None
