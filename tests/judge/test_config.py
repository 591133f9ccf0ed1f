from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import (
    EndpointJudge,
    PoolJudge,
    ScriptedConfig,
    VllmJudge,
    load_judge,
)


def written(folder: Path, text: str) -> str:
    path = folder / "judge.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(named: str) -> InputError:
    with pytest.raises(InputError) as error:
        load_judge(named)
    return error.value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("kind: vllm\nmodel: embedded\n", VllmJudge),
        ("kind: endpoint\nbase_url: http://localhost:8000/v1\nmodel: m\n", EndpointJudge),
        ("kind: pool\nname: shared\n", PoolJudge),
        ("kind: scripted\nfunction: my.judge:answer\n", ScriptedConfig),
    ],
)
def test_the_kind_of_a_file_decides_which_judge_it_is(
    tmp_path: Path, text: str, kind: type[object]
) -> None:
    assert type(load_judge(written(tmp_path, text))) is kind


def test_what_is_left_out_has_the_declared_default(tmp_path: Path) -> None:
    judge = load_judge(written(tmp_path, "kind: vllm\nmodel: m\n"))
    assert isinstance(judge, VllmJudge)
    assert (judge.min_mass, judge.empty_response, judge.overlong) == (0.5, "scale_min", "fail")
    assert (judge.read, judge.pool.replicas, judge.ray.address) == ("logprobs", 1, None)
    assert judge.deadlines.training < judge.deadlines.evaluation


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("model: m\n", None, "kind"),
        ("model: m\nkind: oracle\n", 2, "kind"),
        ("kind: vllm\n", None, "model"),
        ("kind: vllm\nmodel: m\nread: text\n", 3, "read"),
        ("kind: vllm\nmodel: m\nmin_mas: 0.5\n", 3, "min_mas"),
        ("kind: vllm\nmodel: m\npool:\n  replicas: 2\n  replica: 3\n", 5, "pool.replica"),
        ("kind: vllm\nmodel: m\npool:\n  replicas: 0\n", 4, "pool.replicas"),
        ("kind: vllm\nmodel: m\npool:\n  replicas: true\n", 4, "pool.replicas"),
        ("kind: vllm\nmodel: m\npool:\n  replicas: '2'\n", 4, "pool.replicas"),
        ("kind: vllm\nmodel: m\npool:\n  resources:\n    rack: -1\n", 5, "pool.resources.rack"),
        ("kind: vllm\nmodel: m\nmin_mass: 1.5\n", 3, "min_mass"),
        ("kind: vllm\nmodel: m\nmin_mass: .nan\n", 3, "min_mass"),
        ("kind: vllm\nmodel: m\nmin_mass: true\n", 3, "min_mass"),
        ("kind: vllm\nmodel: m\ndeadlines:\n  training: 0\n", 4, "deadlines.training"),
        ("kind: vllm\nmodel: m\ndeadlines: {training: .inf}\n", 3, "deadlines.training"),
        ("kind: vllm\nmodel: m\nenv:\n  OMP: 1\n", 4, "env.OMP"),
        ("kind: vllm\nmodel: m\nempty_response: zero\n", 3, "empty_response"),
        ("kind: endpoint\nmodel: m\n", None, "base_url"),
        ("kind: endpoint\nmodel: m\nbase_url: x\napi_key: secret\n", 4, "api_key"),
        ("kind: pool\nname: shared\nmin_mass: 0.1\n", 3, "min_mass"),
        ("kind: pool\nname: shared\npool: {replicas: 2}\n", 3, "pool"),
    ],
)
def test_a_refused_key_is_named_with_its_line_and_without_the_kind(
    tmp_path: Path, text: str, line: int | None, field: str
) -> None:
    error = refused(written(tmp_path, text))
    assert (error.line, error.field) == (line, field)


def test_a_pool_is_named_without_a_file() -> None:
    judge = load_judge("pool:shared")
    assert judge == PoolJudge(kind="pool", name="shared")
    assert isinstance(judge, PoolJudge)
    assert judge.ray.address == "auto"


def test_a_pool_without_a_name_is_refused() -> None:
    assert "pool's name" in refused("pool:").problem


def test_a_name_that_does_not_ship_says_which_file_is_not_there() -> None:
    error = refused("no-such-judge")
    assert str(error.file).endswith("configs/judges/no-such-judge.yaml")
    assert error.problem == "no such file"


def test_a_path_that_is_not_there_is_not_taken_for_a_shipped_name(tmp_path: Path) -> None:
    assert refused(str(tmp_path / "judge.yaml")).file == tmp_path / "judge.yaml"


def test_a_folder_of_the_same_name_does_not_hide_a_shipped_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-such-judge").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "configs/judges" in str(refused("no-such-judge").file)


def test_a_file_without_an_ending_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("kind: pool\nname: shared\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_judge("mine") == PoolJudge(kind="pool", name="shared")
