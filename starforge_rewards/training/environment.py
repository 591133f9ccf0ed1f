"""What a person writes to train on a rubric: `environments/<name>/environment.yaml`, strict."""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from starforge_rewards import documents
from starforge_rewards.conversation import Frozen, Json, Prose
from starforge_rewards.errors import FieldError, InputError, NotFound
from starforge_rewards.judge.config import AnyJudge, load_judge
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Finite, Rubric
from starforge_rewards.settings import shipped

Value = Literal["total", "normalized"]
OnFailure = Literal["stop", "group_median", "prompt_median"]
"""What a trainer gets that has no way to say "no score": it is told to stop, or, where a person
declares it, the median of the same group's or prompt's scores, marked as such and kept nowhere."""
RowKey = Literal["id", "prompt", "reference", "context", "metadata", "split", "expect", "rubric"]
Columns = Annotated[dict[RowKey, Prose], Field(min_length=1)]
"""A row's key -> the column that holds it, where the two are not named alike."""


def _reference(text: str) -> str:
    try:
        Ref.parse(text)
    except InputError as error:
        raise ValueError(error.problem) from None
    return text


def _plugin(text: str) -> str:
    module, colon, name = text.partition(":")
    if not (module.strip() and colon and name.strip()):
        raise ValueError(f"{text!r} is not of the form module:callable")
    return text


def _url(text: str) -> str:
    parts = urlsplit(text)
    _ = parts.port  # raises where it is none
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{text!r} is no http(s) URL")
    return text


class FileDataset(Frozen):
    """Rows in a `.jsonl` or `.parquet` file."""

    file: Prose
    """Beside environment.yaml."""
    columns: Columns | None = None


class HubDataset(Frozen):
    """Rows of a Hugging Face dataset."""

    hub: Prose
    revision: Prose
    """A commit: what is trained on does not change under the run."""
    config: Prose | None = None
    hub_split: Prose = "train"
    """Which of the dataset's own splits the rows are read from."""
    columns: Columns | None = None
    """Where given, columns that are neither named here nor like a row's key are passed over."""
    streaming: bool = False


class RubricVerifier(Frozen):
    """A judge's score on a rubric."""

    kind: Literal["rubric"]
    ref: Annotated[Prose, AfterValidator(_reference)] | None = None
    """`owner/name` or `owner/name@version`."""
    rubric: Rubric | None = None
    """The rubric itself, known by its digest."""
    ref_column: Prose | None = None
    """The key of each row's own rubric: a reference, or a rubric itself."""
    weight: Finite = 1.0
    value: Value | None = None
    """Default: the environment's, where this is the only verifier; else normalized."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("ref", "rubric", "ref_column") if getattr(self, name)]
        if len(given) != 1:
            raise FieldError("give one of ref, rubric and ref_column", *given[1:2])
        return self


class PluginVerifier(Frozen):
    """A function of the user's."""

    kind: Literal["plugin"]
    plugin: Annotated[Prose, AfterValidator(_plugin)]
    """`module:callable`, from a Rollout and its TaskRow to a number; may be async."""
    weight: Finite = 1.0


class EndpointVerifier(Frozen):
    """A server of the user's, which answers a rollout with `{"reward": number}`."""

    kind: Literal["endpoint"]
    url: Annotated[Prose, AfterValidator(_url)]
    timeout: Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)] = 60
    """Seconds of one attempt."""
    attempts: Annotated[int, Field(ge=1, strict=True)] = 3
    weight: Finite = 1.0


AnyVerifier = RubricVerifier | PluginVerifier | EndpointVerifier


# Tags are no keys, so that a problem's path has none but what was written.


def _verifier_tag(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return f"<{kind}>" if kind in ("rubric", "plugin", "endpoint") else None


def _dataset_tag(value: object) -> str | None:
    match value:
        case str():
            return "<text>"
        case HubDataset():
            return "<hub>"
        case dict():
            return "<hub>" if "hub" in value else "<file>"
        case FileDataset():
            return "<file>"
    return None


def _judge_tag(value: object) -> str | None:
    if isinstance(value, str):
        return "<text>"
    return "<judge>" if isinstance(value, dict | AnyJudge) else None


_Verifier = Annotated[
    Annotated[RubricVerifier, Tag("<rubric>")]
    | Annotated[PluginVerifier, Tag("<plugin>")]
    | Annotated[EndpointVerifier, Tag("<endpoint>")],
    Discriminator(
        _verifier_tag,
        custom_error_type="verifier_kind",
        custom_error_message="must be a mapping with kind: rubric, plugin or endpoint",
    ),
]
_Dataset = Annotated[
    Annotated[Prose, Tag("<text>")]
    | Annotated[FileDataset, Tag("<file>")]
    | Annotated[HubDataset, Tag("<hub>")],
    Discriminator(
        _dataset_tag,
        custom_error_type="dataset_kind",
        custom_error_message="must be a file's name, or a mapping with file or hub",
    ),
]
_Judge = Annotated[
    Annotated[Prose, Tag("<text>")]
    | Annotated[Annotated[AnyJudge, Field(discriminator="kind")], Tag("<judge>")],
    Discriminator(
        _judge_tag,
        custom_error_type="judge_kind",
        custom_error_message="must be a judge's name or file, or a judge itself",
    ),
]


class Environment(Frozen):
    """Tasks, and what makes a reward of a rollout."""

    name: Prose
    """As the folder is named."""
    description: Prose = ""
    dataset: _Dataset
    """A file beside this one, or a dataset of the hub."""
    verifier: _Verifier | None = None
    verifiers: Annotated[tuple[_Verifier, ...], Field(min_length=1)] | None = None
    judge: _Judge = "embedded"
    """A judge file beside this one, a shipped name, `pool:NAME`, or a judge itself."""
    value: Value = "total"
    """What the reward is, with one rubric verifier: on the rubric's scale, or in [0, 1]."""
    on_failure: OnFailure = "stop"
    abort_failure_rate: Annotated[float, Field(gt=0, le=1, strict=True)] = 0.5
    """The run ends where more than this share of the recent rollouts has no score."""
    keep_reasoning: Annotated[bool, Field(strict=True)] = False
    """Show the judge what a model thought between `<think>` tags."""
    metadata: Json = {}

    @model_validator(mode="after")
    def _one_or_a_list(self) -> Self:
        if (self.verifier is None) == (self.verifiers is None):
            raise FieldError("give verifier, or a list as verifiers", "verifier")
        if self.verifiers is not None and "value" in self.model_fields_set:
            said = "holds for one verifier: in a list each rubric verifier says its own"
            raise FieldError(said, "value")
        return self

    @model_validator(mode="after")
    def _together(self) -> Self:
        where = "verifier" if self.verifiers is None else "verifiers"
        if not any(verifier.weight for verifier in self.all_verifiers):
            raise FieldError("at least one weight must not be zero", where)
        if sum(getattr(v, "ref_column", None) is not None for v in self.all_verifiers) > 1:
            raise FieldError("one verifier may say ref_column: a row has one rubric", where)
        return self

    @property
    def all_verifiers(self) -> tuple[AnyVerifier, ...]:
        return (self.verifier,) if self.verifier else self.verifiers or ()


class Loaded(NamedTuple):
    """An environment and the folder that its files lie in."""

    environment: Environment
    folder: Path
    file: Path | None = None
    """Where it is written, for what is said of it."""

    def judge(self, override: str | AnyJudge | None = None) -> AnyJudge:
        """Who judges: `override`, else what the environment says.

        Raises:
            InputError: no such judge.
        """
        named = self.environment.judge if override is None else override
        if not isinstance(named, str):
            return named
        beside = self.folder / named
        is_file = beside.is_file() or beside.suffix in {".yaml", ".yml", ".json"}
        return load_judge(str(beside) if override is None and is_file else named)


def load_environment(named: str | Path) -> Loaded:
    """An environment by its folder, its file, or its name among those that ship.

    Raises:
        InputError: the file is refused, with its line and field.
        NotFound: there is none.
    """
    path = Path(named)
    if path.is_dir():
        path /= "environment.yaml"
    elif not path.suffix and len(path.parts) == 1:
        path = shipped("environments", str(named), "environment.yaml")
    if not path.is_file():
        raise NotFound(f"no environment {str(named)!r}: there is no {path}")
    environment = documents.load(path, Environment)
    folder = path.parent
    if environment.name != folder.resolve().name:
        said = f"must be the folder's name, {folder.resolve().name!r}"
        raise InputError(said, file=path, field="name")
    return Loaded(environment, folder, path)


def shipped_environments() -> list[str]:
    """Names of the environments that ship."""
    return sorted(path.parent.name for path in shipped("environments").glob("*/environment.yaml"))
