"""Rubrics in a folder, `<owner>/<name>.yaml`, served read-only by reference; and rubrics in files.

A folder keeps no versions: what it serves is marked unversioned and known by its digest.
"""

from pathlib import Path

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from starforge_rewards import documents
from starforge_rewards.errors import InputError, NotFound
from starforge_rewards.registry.protocol import Resolver
from starforge_rewards.rubrics.ref import Ref, ResolvedRubric
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.settings import shipped


class FolderRegistry:
    """Resolves references in one folder; default: the rubrics that ship with the project."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or shipped("configs", "rubrics")

    def resolve(self, text: str) -> ResolvedRubric:
        """The rubric that `owner/name` names.

        Raises:
            InputError: not a reference, or its file is refused.
            NotFound: no such rubric, or a version is asked for.
        """
        ref = Ref.parse(text)
        path = self._folder / ref.owner / f"{ref.name}.yaml"
        if not path.is_file():
            raise NotFound(f"no rubric {ref.owner}/{ref.name} in {self._folder}")
        if ref.version is not None:
            raise NotFound(f"{text}: a folder keeps no versions; name it without @{ref.version}")
        return ResolvedRubric.pin(documents.load(path, Rubric), ref)


def rubric_from_file(path: Path) -> ResolvedRubric:
    """A rubric in a YAML or JSON file; its digest is its identity.

    Raises:
        InputError: the file is absent or refused, with its line and field.
    """
    return ResolvedRubric.pin(documents.load(path, Rubric))


class RowRubrics:
    """The rubrics that rows carry, inline or by reference; each distinct one is read once.

    It travels to other processes with what it has read: there a reference means the same version.
    """

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self._read: dict[str, ResolvedRubric] = {}

    def of(self, given: dict[str, JsonValue] | str) -> ResolvedRubric:
        """The rubric that a row's `rubric` means.

        Raises:
            InputError: refused, with the field inside the row.
            NotFound: a reference that names nothing.
        """
        # A reference is no JSON; thousands of rows may come at once, and this is the quickest.
        key = given if isinstance(given, str) else to_json(given).decode()
        if key not in self._read:
            by_ref = isinstance(given, str)
            self._read[key] = self.resolver.resolve(key) if by_ref else _inline(given)
        return self._read[key]

    def __getstate__(self) -> dict[str, object]:
        return {"_read": self._read}


def _inline(given: object) -> ResolvedRubric:
    try:
        return ResolvedRubric.pin(Rubric.model_validate(given))
    except ValidationError as error:
        refused = InputError.of(error, data=given)
        field = f"rubric.{refused.field}" if refused.field else "rubric"
        raise InputError(refused.problem, field=field) from None
