"""The registry of one database, for one user. Cheap to make: it holds no connection."""

from starforge_rewards.registry.database import Database
from starforge_rewards.registry.protocol import Registry
from starforge_rewards.registry.records import User
from starforge_rewards.registry.rubrics import SqlRubrics
from starforge_rewards.registry.runs import SqlRuns
from starforge_rewards.registry.scores import SqlScores


def registry_of(database: Database, user: User) -> Registry:
    """What `user` may read and write of a database."""
    return Registry(
        rubrics=SqlRubrics(database, user),
        runs=SqlRuns(database, user),
        scores=SqlScores(database, user),
    )
