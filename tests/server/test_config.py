import re
from pathlib import Path

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import PoolJudge, load_judge
from starforge_rewards.server.config import ServerConfig, load_server
from starforge_rewards.settings import shipped

NAMES = [file.stem for file in sorted(shipped("configs", "servers").glob("*.yaml"))]


@pytest.mark.parametrize("name", NAMES)
def test_every_server_loads_by_its_name_and_says_each_key_with_a_comment(name: str) -> None:
    config = load_server(name)
    assert config.model_fields_set == set(ServerConfig.model_fields)
    lines = shipped("configs", "servers", f"{name}.yaml").read_text().splitlines()
    for line in lines:
        assert re.fullmatch(r"#.*|\w+:.* # .*Default .*", line), line


def test_the_local_server_is_the_default_one() -> None:
    assert load_server("local") == ServerConfig()


def test_the_clusters_server_uses_a_pool() -> None:
    config = load_server("cluster")
    assert isinstance(load_judge(config.judge), PoolJudge)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("port: 70000", ":1: port: "),
        ("port: '8400'", ":1: port: "),
        ("max_body_mb: 0", ":1: max_body_mb: "),
        ("judge_per_minute: 0", ":1: judge_per_minute: "),
        ("hosts: a", ":1: hosts: unknown key"),
    ],
)
def test_a_refused_key_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(line)
    with pytest.raises(InputError, match=re.escape(f"{file}{said}")):
        load_server(str(file))


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="no such file"):
        load_server("nowhere")
