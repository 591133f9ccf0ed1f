"""The rubrics that ship with the project, published in a database so that jobs can cite them.

An owner who edits one has taken it over: it is left alone from then on.
"""

from pathlib import Path

from starforge_rewards import documents
from starforge_rewards.errors import NotFound
from starforge_rewards.registry.database import Database
from starforge_rewards.registry.records import User
from starforge_rewards.registry.rubrics import SqlRubrics
from starforge_rewards.rubrics.ref import Ref
from starforge_rewards.rubrics.weighted import Rubric
from starforge_rewards.settings import shipped

AUTHOR = "starforge-rewards"
"""Of what was published here; no token writes as this author in another's name."""


def publish(database: Database, folder: Path | None = None) -> list[Ref]:
    """Put every rubric of a folder `<owner>/<name>.yaml`, public; default: the shipped ones.

    Returns:
        The versions that are new.

    Raises:
        InputError: a file is refused.
    """
    new = []
    for path in sorted((folder or shipped("configs", "rubrics")).glob("*/*.yaml")):
        ref = Ref.parse(f"{path.parent.name}/{path.stem}")
        rubrics = SqlRubrics(database, User(owner=ref.owner), author=AUTHOR)
        rubric = documents.load(path, Rubric).model_copy(update={"visibility": "public"})
        try:
            if rubrics.show(ref).author != AUTHOR:
                continue
        except NotFound:
            pass
        written = rubrics.put(ref, rubric)
        if written.changed:
            new.append(written.ref)
    return new
