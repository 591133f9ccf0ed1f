"""What Alembic runs: the connection is the caller's, and so is its transaction."""

from alembic import context

from starforge_rewards.registry.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
