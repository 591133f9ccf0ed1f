"""Several Ray nodes on one host."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from starforge_rewards.engine import actors
from starforge_rewards.engine.actors import Address
from starforge_rewards.judge import pool
from starforge_rewards.judge.config import Pool
from starforge_rewards.judge.pool import Plan, PooledJudge
from starforge_rewards.question import Answer
from tests.judge.hosted import IDENTITY, replica, until
from tests.judge.test_pool import answered, questions


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A head without room for replicas; nodes are added by the test."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    yield made
    actors.leave()
    made.shutdown()


def test_a_node_is_removed_in_mid_run_and_every_question_is_answered(
    cluster: Cluster, tmp_path: Path
) -> None:
    nodes = [cluster.add_node(num_cpus=1, resources={"judge": 1}) for _ in range(2)]
    at = Address(namespace="nodes", cluster=cluster.address)
    of = Plan(
        name="nodes",
        factory=replica,
        args=(tmp_path / "notes", 0.3),
        identity=IDENTITY,
        at=at,
        pool=Pool(replicas=2, max_in_flight=64, resources={"judge": 1}, restarts=1),
    )

    async def work() -> None:
        end = await pool.launch(of)
        running = asyncio.create_task(PooledJudge("nodes", IDENTITY, at, 1).answer(questions(640)))
        await until(lambda: len(answered(tmp_path / "notes")) >= 128)
        await asyncio.to_thread(cluster.remove_node, nodes[0], allow_graceful=False)
        replies = await running
        assert all(isinstance(reply, Answer) for reply in replies)
        assert len(replies) == 640
        end()

    asyncio.run(work())
