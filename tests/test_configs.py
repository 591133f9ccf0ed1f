"""Shipped configurations: judges load and are complete, vLLM and Ray know what is theirs.

What of the KubeRay file no Ray code reads is checked against `RAY_CLUSTER`, the part of the
published `ray.io/v1` reference (KubeRay 1.6) that the file uses, written down here as a schema.
"""

import dataclasses
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, JsonValue

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import EndpointJudge, VllmJudge, load_judge
from starforge_rewards.settings import shipped

JUDGES = [file.stem for file in sorted(shipped("configs", "judges").glob("*.yaml"))]
VLLM = ["embedded", "one-gpu", "eight-gpus", "judge-70b-tp4"]
CLUSTERS = shipped("configs", "clusters")

PARAMS = {"type": "object", "additionalProperties": {"type": "string"}}
TEMPLATE = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["containers"],
            "properties": {
                "containers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "object", "required": ["name", "image", "resources"]},
                }
            },
        }
    },
}
RAY_CLUSTER = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayCluster"},
        "metadata": {"type": "object", "required": ["name", "namespace"]},
        "spec": {
            "type": "object",
            "required": ["headGroupSpec"],
            "additionalProperties": False,
            "properties": {
                "rayVersion": {"type": "string"},
                "authOptions": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"mode": {"enum": ["disabled", "token"]}},
                },
                "headGroupSpec": {
                    "type": "object",
                    "required": ["template"],
                    "additionalProperties": False,
                    "properties": {
                        "serviceType": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                        "rayStartParams": PARAMS,
                        "template": TEMPLATE,
                    },
                },
                "workerGroupSpecs": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["groupName", "minReplicas", "maxReplicas", "template"],
                        "additionalProperties": False,
                        "properties": {
                            "groupName": {"type": "string"},
                            "replicas": {"type": "integer"},
                            "minReplicas": {"type": "integer"},
                            "maxReplicas": {"type": "integer"},
                            "rayStartParams": PARAMS,
                            "template": TEMPLATE,
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def engine_args() -> Any:
    """vLLM's own class, imported late: it takes some 20 s, and other tests do without."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs


@pytest.fixture(scope="module")
def kuberay() -> Any:
    return yaml.safe_load((CLUSTERS / "kuberay.yaml").read_text())


@pytest.fixture(scope="module")
def launcher() -> Any:
    return yaml.safe_load((CLUSTERS / "ray-launcher.yaml").read_text())


def vllm_judge(name: str) -> VllmJudge:
    judge = load_judge(name)
    assert isinstance(judge, VllmJudge)
    return judge


def unset(model: BaseModel) -> set[str]:
    """Keys of a configuration, and of those inside it, that its file leaves out."""
    missing = set(type(model).model_fields) - model.model_fields_set
    for name in model.model_fields_set:
        if isinstance(inner := getattr(model, name), BaseModel):
            missing |= {f"{name}.{key}" for key in unset(inner)}
    return missing


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_loads_by_its_name_and_says_each_key(name: str) -> None:
    judge = load_judge(name)
    assert isinstance(judge, VllmJudge if name in VLLM else EndpointJudge)
    assert unset(judge) == set()


@pytest.mark.parametrize("name", JUDGES)
def test_every_key_has_a_comment_that_says_its_default_where_there_is_one(name: str) -> None:
    lines = shipped("configs", "judges", f"{name}.yaml").read_text().splitlines()
    for line in lines:
        assert re.fullmatch(r"#.*|\s*\w+:.* # .{5,}|ray:|pool:", line), line


def test_every_judge_is_in_the_list_of_the_folder() -> None:
    readme = shipped("configs", "README.md").read_text()
    files = [file for file in shipped("configs").rglob("*.yaml") if "locks" not in file.parts]
    assert [file.name for file in files if file.name not in readme] == []


def test_a_misspelt_key_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "judge.yaml"
    text = shipped("configs", "judges", "embedded.yaml").read_text()
    file.write_text(text.replace("replicas:", "replica:"))
    line = text[: text.index("replicas:")].count("\n") + 1
    with pytest.raises(InputError, match=f":{line}: pool.replica: unknown key"):
        load_judge(str(file))


@pytest.mark.parametrize("name", VLLM)
def test_vllm_knows_every_engine_option(name: str, engine_args: Any) -> None:
    judge = vllm_judge(name)
    known = {field.name for field in dataclasses.fields(engine_args)}
    assert set(judge.engine) - known == set()
    made = engine_args(model=judge.model, dtype=judge.dtype, **judge.engine)
    assert {key: getattr(made, key) for key in judge.engine} == judge.engine


def test_vllm_refuses_a_misspelt_engine_option(engine_args: Any) -> None:
    misspelt: dict[str, JsonValue] = {"max_model_length": 4096}
    with pytest.raises(TypeError, match="max_model_length"):
        engine_args(model="m", **misspelt)


def test_no_engine_option_is_one_that_the_judge_sets_itself() -> None:
    ours = {"model", "revision", "tokenizer_revision", "dtype", "scheduling_policy"}
    for name in VLLM:
        assert ours & set(vllm_judge(name).engine) == set()


@pytest.mark.parametrize("name", VLLM)
def test_a_replica_has_the_gpus_that_its_engine_is_spread_over(name: str) -> None:
    judge = vllm_judge(name)
    parallel = judge.engine.get("tensor_parallel_size", 1)
    assert judge.pool.gpus_per_replica == (0 if name == "embedded" else parallel)
    # Inside Ray, vLLM would spread such an engine by Ray itself, over any nodes.
    assert (parallel == 1) == ("distributed_executor_backend" not in judge.engine)


def test_the_kuberay_file_is_a_ray_cluster(kuberay: Any) -> None:
    jsonschema.validate(kuberay, RAY_CLUSTER)


def test_a_misspelt_key_of_a_worker_group_is_no_ray_cluster(kuberay: Any) -> None:
    (group,) = kuberay["spec"]["workerGroupSpecs"]
    wrong = {**kuberay["spec"], "workerGroupSpecs": [{**group, "maxReplica": 2}]}
    with pytest.raises(jsonschema.ValidationError, match="maxReplica"):
        jsonschema.validate({**kuberay, "spec": wrong}, RAY_CLUSTER)


def test_ray_reads_nodes_from_the_kuberay_file_that_hold_the_pools(kuberay: Any) -> None:
    from ray.autoscaler._private.kuberay import autoscaling_config

    read = autoscaling_config._derive_autoscaling_config_from_ray_cr(kuberay)
    nodes = read["available_node_types"]
    assert nodes["headgroup"]["resources"]["CPU"] == 0
    workers, resources = nodes["gpus"]["min_workers"], nodes["gpus"]["resources"]
    for name in ("eight-gpus", "judge-70b-tp4"):
        pool = vllm_judge(name).pool
        on_one = min(
            resources["GPU"] // pool.gpus_per_replica, resources["CPU"] // pool.cpus_per_replica
        )
        assert workers * on_one >= pool.replicas


def test_ray_accepts_the_launcher_file_and_refuses_a_misspelt_key(launcher: Any) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared = prepare_config(launcher)  # as `ray up` does, by the provider's defaults
    validate_config(prepared)
    assert prepared["max_workers"] == len(launcher["provider"]["worker_ips"])
    with pytest.raises(jsonschema.ValidationError, match="max_worker"):
        validate_config({**prepared, "max_worker": 1})


def test_clusters_run_the_ray_that_is_tested(kuberay: Any, launcher: Any) -> None:
    version = metadata.version("ray")
    assert kuberay["spec"]["rayVersion"] == version
    assert any(f"'ray[default]=={version}'" in line for line in launcher["setup_commands"])
