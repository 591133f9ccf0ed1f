"""What a user may read and write, as conditions of the one query that looks a thing up.

What is not readable is not found: the same query, the same number of them, the same answer.
"""

from sqlalchemy import Boolean, ColumnElement, Select, bindparam, or_, select, true, tuple_

from starforge_rewards.errors import Forbidden, NotFound
from starforge_rewards.registry import schema
from starforge_rewards.registry.records import User
from starforge_rewards.rubrics.ref import Ref

READABLE: ColumnElement[bool] = or_(
    schema.rubrics.c.visibility == "public",
    schema.rubrics.c.owner == bindparam("reader"),
    bindparam("reads_all", type_=Boolean),
)
"""`readable` of whom `reader` names, for a statement that is made once."""


def reader(user: User) -> dict[str, str | bool]:
    """The parameters of `READABLE`."""
    return {"reader": user.owner, "reads_all": user.admin}


def readable(user: User) -> ColumnElement[bool]:
    """Of `schema.rubrics`: public, one's own, or all to an administrator."""
    table = schema.rubrics
    if user.admin:
        return true()
    return (table.c.visibility == "public") | (table.c.owner == user.owner)


def may_read(user: User, owner: str, visibility: str) -> bool:
    """As `readable`, of a row that was found otherwise."""
    return user.admin or visibility == "public" or owner == user.owner


def own(user: User, owner: str) -> None:
    """Only the owner writes, administrators included.

    Raises:
        Forbidden: another's namespace, whether anything is there or not.
    """
    if user.owner != owner:
        raise Forbidden(f"{owner!r} is not your namespace: you write under {user.owner!r}")


def absent(ref: Ref) -> NotFound:
    """What is said of a rubric that is not there, or that is not readable."""
    return NotFound(f"no rubric {ref} that you can read")


def versions(refs: list[Ref], user: User) -> Select[int, str, str, int]:
    """Id, owner, name and current version of the readable rubrics among those named."""
    table = schema.rubrics
    named = sorted({(ref.owner, ref.name) for ref in refs})
    return select(table.c.id, table.c.owner, table.c.name, table.c.version).where(
        tuple_(table.c.owner, table.c.name).in_(named), readable(user)
    )
