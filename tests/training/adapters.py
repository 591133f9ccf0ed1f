"""Every adapter, called as its trainer calls it."""

import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tests.training.conformance import Adapter, Asked, Group, Worth, run


def _verl(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.verl import compute_score

    if not inspect.iscoroutinefunction(compute_score):
        raise TypeError("verl takes anything else for a sync function")

    async def each() -> list[dict[str, float]]:
        return [
            await compute_score(
                "data",
                response,
                row.get("reference"),
                {**row, "prompt": asked.prompt, "num_turns": 2, "split": "test", "index": at},
                environment=reward,
            )
            for at, (response, row) in enumerate(zip(asked.responses, asked.rows, strict=True))
        ]

    found = run(each())
    return Asked([one["score"] for one in found], found)


def _verl_batch(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.verl import compute_scores

    found = compute_scores(
        data_sources=["data"] * len(asked.responses),
        solution_strs=list(asked.responses),
        ground_truths=[row.get("reference") for row in asked.rows],
        extra_infos=[{**row, "prompt": asked.prompt} for row in asked.rows],
        environment=reward,
    )
    return Asked([one["score"] for one in found], found)


class _Column(list[int]):
    """As much of a tensor of ids, or of its mask, as a manager touches."""

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _Column(found) if isinstance(at, slice) else found

    def sum(self) -> int:
        return sum(self)


class _Letters:
    """A tokenizer whose ids are characters; 0 is the padding."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return "".join(chr(one) for one in ids)


def _verl_manager(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.verl_manager import RubricRewardManager

    config = SimpleNamespace()
    config.reward = SimpleNamespace(
        custom_reward_function={"reward_kwargs": {"environment": reward}}
    )

    async def each() -> list[dict[str, Any]]:
        manager = RubricRewardManager(config, _Letters(), None)
        return [
            await manager.run_single([_proto(asked.prompt, response, row)])
            for response, row in zip(asked.responses, asked.rows, strict=True)
        ]

    found = run(each())
    logged = [one["reward_extra_info"] for one in found]
    return Asked([one["reward_score"] for one in found], logged)


def _proto(prompt: str, response: str, row: dict[str, Any]) -> SimpleNamespace:
    ids = [ord(one) for one in response]
    mask = [1, 1] + [1] * len(ids) + [0, 0]
    return SimpleNamespace(
        batch={"responses": _Column([*ids, 0, 0]), "attention_mask": _Column(mask)},
        non_tensor_batch={
            "raw_prompt": [{"role": "user", "content": prompt}],
            "reward_model": {"ground_truth": row.get("reference")},
            "extra_info": {**row, "split": "train"},
        },
    )


def _openrlhf(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.openrlhf import reward_func_of

    reward_func = reward_func_of(reward)
    prompt = f"<|im_start|>user\n{asked.prompt}<|im_end|>\n<|im_start|>assistant\n"
    worth: list[Worth] = []
    logged = []
    for response, row in zip(asked.responses, asked.rows, strict=True):
        query = f"{prompt}{response}<|im_end|>\n"
        found = reward_func([query], [prompt], [row.get("reference")])
        worth += found["rewards"]
        logged.append({name: value[0] for name, value in found["extra_logs"].items()})
    return Asked(worth, logged)


def _nemo_gym(reward: Any, asked: Group) -> Asked:
    from nemo_gym.judge import judge_failsafe  # type: ignore[import-not-found]

    from starforge_rewards.training import nemo_gym

    config = nemo_gym.RubricServerConfig.model_construct(
        environment=reward, judge=None, run_id=None
    )
    server = nemo_gym.RubricResourcesServer.model_construct(config=config)
    verify = judge_failsafe(server.verify)
    answers = []
    for response, row in zip(asked.responses, asked.rows, strict=True):
        said = [{"type": "output_text", "text": response}]
        thought = {"type": "reasoning", "summary": []}
        turn = {"type": "message", "role": "assistant", "content": said}
        body = nemo_gym.RubricVerifyRequest(
            responses_create_params={"input": [{"role": "user", "content": asked.prompt}]},
            response={"output": [thought, turn]},
            **row,
        )
        answered = run(verify(body))
        answers.append(answered if isinstance(answered, dict) else answered.model_dump())
    for answer in answers:
        assert answer["mask_sample"] == (answer["failure_kind"] == "judge_failed")
    worth = [None if one["mask_sample"] else one["reward"] for one in answers]
    return Asked(worth)


def _skyrl(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.skyrl import RubricEnv

    worth: list[Worth] = []
    for response, row in zip(asked.responses, asked.rows, strict=True):
        extras = {"reward_spec": {"ground_truth": row.get("reference")}, "extra_info": row}
        env = RubricEnv({"environment": reward}, extras)
        env.init([{"role": "user", "content": asked.prompt}])
        step = env.step(response)
        assert step["done"]
        assert step["observations"] == []
        worth.append(step["reward"])
    return Asked(worth)


def _atropos_function(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.atropos import RubricRewardFunction

    function = RubricRewardFunction(reward, weight=1.0)
    completions = [{"role": "assistant", "content": one} for one in asked.responses]
    columns = {"reference": [row.get("reference") for row in asked.rows]}
    return Asked(list(function(completions, prompts=[asked.prompt] * len(completions), **columns)))


def _atropos_group(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.atropos import score_group
    from starforge_rewards.training.calls import item_of

    count = len(asked.responses)
    rows = zip(asked.responses, asked.rows, strict=True)
    items = [item_of(asked.prompt, response, row) for response, row in rows]
    data = {"tokens": [[at] for at in range(count)], "masks": [[1]] * count, "scores": []}
    scored = run(score_group(reward, data, items))
    worth: list[Worth] = [None] * count
    if scored is not None:
        size = (scored.get("group_overrides") or {}).get("group_size", count)
        assert len(scored["tokens"]) == len(scored["masks"]) == len(scored["scores"]) == size
        for (at,), value in zip(scored["tokens"], scored["scores"], strict=True):
            worth[at] = value
    return Asked(worth)


def _art(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.art import score_group
    from tests.training.art_shape import Trajectory, TrajectoryGroup

    made = [
        Trajectory(
            messages_and_choices=[
                {"role": "user", "content": asked.prompt},
                {"role": "assistant", "content": response},
            ],
            reward=-1.0,
            metadata={"reference": row.get("reference") or "Yes.", "at": at},
        )
        for at, (response, row) in enumerate(zip(asked.responses, asked.rows, strict=True))
    ]
    scored = run(score_group(reward)(TrajectoryGroup(made)))
    assert [one.reward for one in made] == [-1.0] * len(made), "what was given is left as it is"
    worth: list[Worth] = [None] * len(made)
    for one in scored.trajectories if scored is not None else ():
        assert one.metrics["independent_reward"] == -1.0
        worth[one.metadata["at"]] = one.reward
    return Asked(worth)


def _eval_protocol(batch: bool) -> Callable[[Any, Group], Asked]:
    def ask(reward: Any, asked: Group) -> Asked:
        from starforge_rewards.training import eval_protocol

        said = [
            [{"role": "user", "content": asked.prompt}, {"role": "assistant", "content": response}]
            for response in asked.responses
        ]
        if batch:
            results = run(eval_protocol.batch(reward)(rollouts_messages=said))
        else:
            function = eval_protocol.pointwise(reward)
            pairs = zip(said, asked.rows, strict=True)
            results = [
                run(function(messages=one, ground_truth=row.get("reference"), kind="x"))
                for one, row in pairs
            ]
        for one in results:
            assert one.is_score_valid == (one.error is None)
        return Asked([one.score if one.is_score_valid else None for one in results])

    return ask


def _areal(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.areal import reward_fn_of

    reward_fn = reward_fn_of(reward)
    rows = zip(asked.responses, asked.rows, strict=True)
    return Asked(
        [
            reward_fn(asked.prompt, response, [1], [2], query_id=at, **row)
            for at, (response, row) in enumerate(rows)
        ]
    )


def _samples(asked: Group) -> list[Any]:
    return [
        SimpleNamespace(
            prompt=asked.prompt, response=response, label=row.get("reference"), metadata=row
        )
        for response, row in zip(asked.responses, asked.rows, strict=True)
    ]


def _slime(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.slime import rm

    args = SimpleNamespace(sf_environment=reward, reward_key=None)
    return Asked([run(rm(args, sample, evaluation=False)) for sample in _samples(asked)])


def _slime_batch(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.slime import rm

    args = SimpleNamespace(sf_environment=reward, reward_key="score")
    found = run(rm(args, _samples(asked)))
    return Asked([one["score"] for one in found], found)


def _ms_swift(reward: Any, asked: Group) -> Asked:
    from starforge_rewards.training.ms_swift import orm_of

    orm = orm_of(reward)(args=None)
    assert inspect.iscoroutinefunction(type(orm).__call__), "how ms-swift knows it"
    messages = [
        [{"role": "user", "content": asked.prompt}, {"role": "assistant", "content": response}]
        for response in asked.responses
    ]
    columns = {"solution": [row.get("reference") for row in asked.rows], "trainer_state": None}
    return Asked(run(orm(list(asked.responses), messages=messages, **columns)))


def _openenv(asynchronous: bool) -> Callable[[Any, Group], Asked]:
    def ask(reward: Any, asked: Group) -> Asked:
        from starforge_rewards.training import openenv

        kind = openenv.AsyncStarforgeRubric if asynchronous else openenv.StarforgeRubric
        rubric = kind(reward)
        worth: list[Worth] = []
        for response, row in zip(asked.responses, asked.rows, strict=True):
            action = SimpleNamespace(message=response)
            seen = SimpleNamespace(prompt=asked.prompt, metadata=row)
            found = rubric(action, seen)
            worth.append(run(found) if asynchronous else found)
            assert rubric.last_score == worth[-1]
        return Asked(worth)

    return ask


ADAPTERS = (
    Adapter("verl", "raises", False, _verl),
    Adapter("verl-batch", "raises", True, _verl_batch),
    Adapter("verl-manager", "raises", False, _verl_manager),
    Adapter("openrlhf", "raises", False, _openrlhf),
    Adapter("nemo_gym", "left out", False, _nemo_gym),
    Adapter("skyrl", "raises", False, _skyrl),
    Adapter("atropos-function", "raises", True, _atropos_function),
    Adapter("atropos-group", "left out", True, _atropos_group),
    Adapter("art", "left out", True, _art),
    Adapter("eval_protocol", "left out", False, _eval_protocol(batch=False)),
    Adapter("eval_protocol-batch", "left out", True, _eval_protocol(batch=True)),
    Adapter("areal", "raises", False, _areal),
    Adapter("slime", "raises", False, _slime),
    Adapter("slime-batch", "raises", True, _slime_batch),
    Adapter("ms_swift", "raises", True, _ms_swift),
    Adapter("openenv", "raises", False, _openenv(asynchronous=False)),
    Adapter("openenv-async", "raises", False, _openenv(asynchronous=True)),
)
BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}
