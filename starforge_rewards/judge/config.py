"""What a person writes to choose a judge: one YAML file, strict, each key with its meaning."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from starforge_rewards import documents
from starforge_rewards.conversation import Frozen
from starforge_rewards.errors import InputError
from starforge_rewards.judge.identity import EmptyRule, OverlongRule
from starforge_rewards.settings import shipped

Role = Literal["training", "evaluation"]
Seconds = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, strict=True)]
Times = Annotated[int, Field(ge=0, strict=True)]


class Deadlines(Frozen):
    """Seconds until a question that has no reply becomes `timeout`.

    For training they count from the call, since a trainer waits. For evaluation they count from
    when the question was sent, or the judge last answered anything: a long queue is no failure.
    """

    training: Seconds = 120
    evaluation: Seconds = 3600


class Common(Frozen):
    """What every judge has, wherever it runs."""

    min_mass: Annotated[float, Field(ge=0, le=1, strict=True)] = 0.5
    """Least raw probability that the labels must hold together; below it: `off_scale`."""
    empty_response: EmptyRule = "scale_min"
    overlong: OverlongRule = "fail"
    reuse: bool = True
    """Look answers up in the verdict cache, and keep them there."""
    cache_mb: Count = 1024
    """Largest size of the verdict cache on disk, in MB."""
    deadlines: Deadlines = Deadlines()


class Pool(Frozen):
    """How many engines, where, and what happens when one is lost."""

    replicas: Count = 1
    fronts: Count = 1
    """Front actors; prompts are sharded over them. One serves thousands of questions a second."""
    max_in_flight: Count = 256
    """Questions at one replica at a time; a prompt's next choice takes what is over."""
    restarts: Times = 3
    """How often Ray starts a lost replica again."""
    resends: Times = 3
    """How often a question whose replica was lost is sent again before it is `unreachable`."""
    gpus_per_replica: Amount = 0
    cpus_per_replica: Amount = 0
    threads: Count | None = None
    """OMP threads of a replica; default: the machine's cores divided by the replicas."""
    resources: dict[str, Amount] = {}
    """Custom Ray resources that a replica asks for, to place it on chosen nodes."""
    start_timeout: Seconds = 900


class Ray(Frozen):
    """The cluster to use."""

    address: str | None = None
    """`auto`, `host:port` or `ray://…`; default: a cluster of this process alone."""


class VllmJudge(Common):
    """A model on our own vLLM engines, in Ray actors."""

    kind: Literal["vllm"]
    model: str
    """A folder, a Hugging Face name, or `embedded`: the small model that makes all run on a CPU."""
    revision: str | None = None
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    read: Literal["logprobs", "reasoned"] = "logprobs"
    reason_tokens: Count = 160
    """Most tokens of a reason, with `read: reasoned`."""
    engine: dict[str, JsonValue] = {}
    """Any option of vLLM's `EngineArgs`, by its own name."""
    env: dict[str, str] = {}
    """Environment variables of the engine's process, such as `VLLM_…`."""
    pool: Pool = Pool()
    ray: Ray = Ray()


class EndpointJudge(Common):
    """Any OpenAI-compatible server."""

    kind: Literal["endpoint"]
    base_url: str
    """Up to and with `/v1`."""
    model: str
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key is in no file."""
    read: Literal["logprobs", "text"] = "text"
    """`logprobs` needs a vLLM server, which takes `logprob_token_ids`."""
    max_tokens: Count = 512
    """Most tokens of a reply, with `read: text`; twice as many where a first reply is cut off."""
    json_schema: bool = True
    """With `read: text`, have the server hold the reply to the verdict's JSON schema. Set it to
    false where a server refuses `response_format`; the reply is read as strictly either way."""
    body: dict[str, JsonValue] = {}
    """Fields laid over a request's body, by the server's own names; null leaves one of ours out.
    The model, the messages and what a `logprobs` read needs cannot be changed."""
    max_in_flight: Count = 32
    timeout: Seconds = 60
    """Of one request."""
    attempts: Count = 3
    """How often a question is asked in all, when the server fails or is not reached."""


class PoolJudge(Frozen):
    """A named pool that `starforge judge up` started; its own configuration holds."""

    kind: Literal["pool"]
    name: str
    ray: Ray = Ray(address="auto")


class ScriptedConfig(Common):
    """A Python function is the judge: for tests of what stands around one."""

    kind: Literal["scripted"]
    function: str
    """`module:function`, from a Question to a label or a Reply."""


AnyJudge = VllmJudge | EndpointJudge | PoolJudge | ScriptedConfig
_ADAPTER: TypeAdapter[AnyJudge] = TypeAdapter(Annotated[AnyJudge, Field(discriminator="kind")])


def remembers(config: AnyJudge) -> bool:
    """Whether what a judge said once may answer for it in a later process."""
    match config:
        case PoolJudge():
            return True
        case ScriptedConfig():  # what a function answers may rest on more than its text
            return False
        case _:
            return config.reuse


def load_judge(named: str) -> AnyJudge:
    """The configuration in a file, of a shipped name (`embedded`) or of a pool (`pool:NAME`).

    Raises:
        InputError: the file is absent or refused, with its line and field, or NAME is empty.
    """
    if named.startswith("pool:"):
        if not (name := named.removeprefix("pool:")):
            raise InputError(f"{named!r}: write the pool's name after the colon")
        return PoolJudge(kind="pool", name=name)
    path = Path(named)
    if not path.suffix and not path.is_file():
        path = shipped("configs", "judges", f"{named}.yaml")
    return documents.load(path, _ADAPTER)
