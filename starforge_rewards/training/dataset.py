"""An environment's rows: the tasks that a policy is given, with what a verifier may know of them.

A malformed row or an unknown split fails the whole file, with its line. A split that is not there
is an error, never served from the other.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

from starforge_rewards import tables
from starforge_rewards.conversation import Content, Frozen, Json, Rollout, RowId, Text
from starforge_rewards.errors import InputError, NotFound, Unavailable
from starforge_rewards.training.environment import HubDataset, Loaded, RubricVerifier

Split = Literal["train", "eval"]


class TaskRow(Frozen):
    """One task. `split` and `expect` are hidden from every judge."""

    id: RowId
    prompt: Content
    reference: Text | None = None
    context: Text | None = None
    metadata: Json = {}
    split: Split = "train"
    expect: Literal["refuse", "comply"] | None = None
    """Of a safety rubric, where high means declined: `comply` turns the reward round."""
    rubric: Json | Text | None = None
    """The row's own rubric, where a verifier says `ref_column`."""

    def without_split(self) -> Self:
        """As a verifier may see it: the same row, whatever it is used for."""
        return self if self.split == "train" else self.model_copy(update={"split": "train"})

    def rollout(self, response: Content) -> Rollout:
        """The rollout of a policy that answered so."""
        return Rollout(
            id=self.id,
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            context=self.context,
            metadata=self.metadata,
        )


def read_tasks(loaded: Loaded, split: Split | None = None) -> Iterator[TaskRow]:
    """The rows of an environment, of one split or of both, in their order.

    A file is checked whole before the first row comes; a hub dataset is checked as it comes.

    Raises:
        InputError: a row is refused, has no rubric where each must have its own, or its id is there
            twice, with its line; or the file, or the split, has no rows.
        NotFound: no such hub dataset.
        Unavailable: the hub does not go on.
    """
    for _, row in numbered_tasks(loaded, split):
        yield row


def numbered_tasks(loaded: Loaded, split: Split | None = None) -> Iterator[tuple[int, TaskRow]]:
    """As `read_tasks`, each with its line, or its row in a table."""
    match loaded.environment.dataset:
        case HubDataset() as source:
            found = _checked(_hub(source, loaded), source.hub, split, loaded)
        case source:
            path = loaded.folder / (source if isinstance(source, str) else source.file)
            for _ in _checked(_rows(loaded, path), path, split, loaded):
                pass
            found = _checked(_rows(loaded, path), path, split, loaded)
    for line, row in found:
        if split in (None, row.split):
            yield line, row


def _rows(loaded: Loaded, path: Path) -> Iterator[tuple[int, TaskRow]]:
    return tables.rows(path, TaskRow, _columns(loaded))


def _columns(loaded: Loaded) -> dict[str, str] | None:
    """Which column holds which key; the rubric's as the verifier says."""
    dataset = loaded.environment.dataset
    named = {} if isinstance(dataset, str) else dataset.columns or {}
    columns = {str(key): column for key, column in named.items()}
    for verifier in loaded.environment.all_verifiers:
        if isinstance(verifier, RubricVerifier) and verifier.ref_column is not None:
            columns["rubric"] = verifier.ref_column
    return columns or None


def _checked(
    rows: Iterator[tuple[int, TaskRow]], source: Path | str, split: Split | None, loaded: Loaded
) -> Iterator[tuple[int, TaskRow]]:
    verifiers = loaded.environment.all_verifiers
    own = next((column for v in verifiers if (column := getattr(v, "ref_column", None))), None)
    lines: dict[str, int] = {}
    splits: set[Split] = set()
    for line, row in rows:
        if row.id in lines:
            said = f"{row.id!r} is already the id of line {lines[row.id]}"
            raise InputError(said, file=source, line=line, field="id")
        if own is not None and row.rubric is None:
            said = "each row must have a rubric: the environment names none (ref_column)"
            raise InputError(said, file=source, line=line, field=own)
        lines[row.id] = line
        splits.add(row.split)
        yield line, row
    if not splits:
        raise InputError("holds no rows", file=source)
    if split is not None and split not in splits:
        raise InputError(f"has no row of the split {split!r}", file=source, field="split")


def _hub(source: HubDataset, loaded: Loaded) -> Iterator[tuple[int, TaskRow]]:
    import datasets  # late: loads pandas, and only a hub dataset needs it

    named, columns = f"{loaded.environment.name}: dataset {source.hub}", _columns(loaded)
    try:
        found = datasets.load_dataset(
            source.hub,
            source.config,
            split=source.hub_split,
            revision=source.revision,
            streaming=source.streaming,
        )
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise NotFound(f"{named}: {error}") from error
    for number, record in enumerate(_coming(found, named), start=1):
        kept = tables.without_nulls(record)
        if columns:  # a public dataset has columns that nobody asked for
            wanted = {*columns.values(), *TaskRow.model_fields}
            kept = {key: value for key, value in kept.items() if key in wanted}
        kept.setdefault((columns or {}).get("id", "id"), f"row-{number}")
        yield number, tables.validated(kept, TaskRow, columns, source.hub, number)


def _coming(found: Iterable[dict[str, Any]], named: str) -> Iterator[dict[str, Any]]:
    """The records of a stream, which may break off."""
    try:
        yield from found
    except OSError as error:
        raise Unavailable(f"{named}: {error}") from error
