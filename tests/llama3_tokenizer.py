"""A small byte-level tokenizer with Llama 3's headers, quite another than the embedded model's.

It is trained so that its BPE merges can build `</think>`, which is also an added token of it.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
ADDED = ("<think>", "</think>")
"""Added tokens with `special=False`."""

_TURN = "<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>"
_ASK = "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
TRIMS = "{{ bos_token }}{% for m in messages %}" + _TURN + "{% endfor %}" + _ASK
REFUSES_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    + TRIMS
)
DROPS_SYSTEM = TRIMS.replace("in messages", "in messages if m['role'] != 'system'")
THINKS = TRIMS + "<think>\n"
DATED = "{{ date_string }}{{ strftime_now('%d %b %Y') }}" + TRIMS
REPEATS_USER = TRIMS + "{{ messages[-1]['content'] }}"
NONE = ""

_TEXTS = ["Score: 0 1 2 3 4 5 6 7 8 9", "A B C </think> </think> </think> reason because"] * 9


def write(folder: Path, template: str = TRIMS) -> Path:
    """Write the tokenizer with a chat template; the same ids every time."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\s+|\S+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.add_tokens([AddedToken(text, special=False) for text in ADDED])
    tokenizer.enable_truncation(64)  # as a file is that was saved after use in training
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL[0],
        "eos_token": SPECIAL[3],
        **({"chat_template": template} if template else {}),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
