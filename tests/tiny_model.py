"""A two-layer random Llama with the embedded model's tokenizer: starts fast, answers fast.

Its label mass is near zero, so judges on it need `min_mass: 0`; what it answers means nothing.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM


def write(folder: Path, tokenizer: Path) -> Path:
    """Write the model with the tokenizer of another folder; the same weights every time."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=json.loads((tokenizer / "config.json").read_text())["vocab_size"],
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=8192,
        bos_token_id=1,
        eos_token_id=2,
        architectures=["LlamaForCausalLM"],
        dtype="float32",
    )
    folder.mkdir(parents=True, exist_ok=True)
    model = LlamaForCausalLM(config)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
    for file in tokenizer.glob("tokenizer*"):
        shutil.copy(file, folder)
    shutil.copy(tokenizer / "chat_template.jinja", folder)
    return folder


def judge_yaml(model: Path, **pool: object) -> str:
    """A judge file for it; keyword arguments go into `pool`."""
    engine = {
        "max_model_len": 4096,
        "enforce_eager": True,
        "block_size": 32,
        "kv_cache_memory_bytes": 64 * 2**20,
    }
    config = {
        "kind": "vllm",
        "model": str(model),
        "dtype": "float32",
        "min_mass": 0,
        "engine": engine,
        "pool": pool,
    }
    return json.dumps(config)
