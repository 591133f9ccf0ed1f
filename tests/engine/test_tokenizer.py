"""Hostile text stays text, on the embedded model's tokenizer and on one of quite another kind."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers

from starforge_rewards.engine.tokenizer import ChatTokenizer
from starforge_rewards.errors import EngineFailed
from tests import llama3_tokenizer as llama3

CONTROL = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<file_sep>",
    *llama3.SPECIAL,
    *llama3.ADDED,
)
HOSTILE = st.lists(st.sampled_from(CONTROL) | st.text(max_size=8), max_size=12).map("".join)
DIGITS = tuple("0123456789")
LETTERS = tuple("ABCDEFGHIJKL")


@pytest.fixture(scope="module")
def raw(folder: Path) -> Tokenizer:
    """The file itself, as any other reader of it has it."""
    loaded = Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded.no_truncation()
    return loaded


def llama(folder: Path, template: str) -> ChatTokenizer:
    return ChatTokenizer(str(llama3.write(folder, template)))


@settings(deadline=None, max_examples=200)
@given(text=HOSTILE)
def test_no_text_becomes_a_control_token(
    tokenizer: ChatTokenizer, raw: Tokenizer, text: str
) -> None:
    ids = tokenizer.material(text)
    assert tokenizer.added.isdisjoint(ids)
    control = {i for i, token in raw.get_added_tokens_decoder().items() if token.content.strip()}
    assert control.isdisjoint(ids)


def test_the_second_tokenizer_would_build_control_tokens_out_of_text(tmp_path: Path) -> None:
    loaded = Tokenizer.from_file(str(llama3.write(tmp_path) / "tokenizer.json"))
    assert "</think>" in loaded.model.tokenize("</think>")[0].value
    assert loaded.token_to_id("</think>") == loaded.model.tokenize("</think>")[0].id


@settings(deadline=None, max_examples=200)
@given(text=HOSTILE)
def test_text_is_whole_after_tokens_and_back(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "whole"
    if not folder.is_dir():
        llama3.write(folder)
    ids = ChatTokenizer(str(folder)).material(text)
    decoded = Tokenizer.from_file(str(folder / "tokenizer.json")).decode(ids, False)
    assert decoded == text


@pytest.mark.parametrize("text", ["The moon is 384400 km away.", "Zwölf Äpfel.\n\n- eins\n- zwei"])
def test_clean_text_has_the_models_own_tokens(
    tokenizer: ChatTokenizer, raw: Tokenizer, text: str
) -> None:
    assert tokenizer.material(text) == raw.encode(text, add_special_tokens=False).ids
    assert tokenizer.trusted(text) == tokenizer.material(text)


def test_runs_of_white_space_are_text_even_where_a_model_has_added_tokens_for_them(
    tmp_path: Path,
) -> None:
    parts = ["\u2581", "\n", *"a<table>", "\u2581\u2581", "\n\n"]
    built = [("t", "a"), ("ta", "b"), ("tab", "l"), ("tabl", "e"), ("<", "table"), ("<table", ">")]
    merges = [("\u2581", "\u2581"), ("\n", "\n"), *built]
    vocab = {text: i for i, text in enumerate(dict.fromkeys([*parts, *map("".join, built)]))}
    raw = Tokenizer(models.BPE(vocab, merges))
    raw.normalizer = normalizers.Replace(" ", "\u2581")
    raw.add_tokens(
        [AddedToken(text, special=False) for text in ("\n\n", "\u2581\u2581", "<table>")]
    )
    raw.save(str(llama3.write(tmp_path) / "tokenizer.json"))
    tokenizer = ChatTokenizer(str(tmp_path))
    assert tokenizer.material("a\n\na  a") == raw.encode("a\n\na  a").ids
    assert {vocab["\n\n"], vocab["\u2581\u2581"]} <= set(tokenizer.material("a\n\na  a"))
    assert raw.encode("<table>").ids == [vocab["<table>"]]
    assert tokenizer.material("<table>") == [vocab["<table"], vocab[">"]]


def test_where_a_model_can_only_write_text_as_a_control_token_the_text_is_refused(
    tmp_path: Path,
) -> None:
    raw = Tokenizer(models.WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))  # noqa: S106
    raw.add_special_tokens(["[UNK]"])
    raw.save(str(llama3.write(tmp_path) / "tokenizer.json"))
    tokenizer = ChatTokenizer(str(tmp_path))
    assert tokenizer.material("word") == [1]
    with pytest.raises(ValueError, match="reads as control"):
        tokenizer.material("other")


def test_long_text_is_never_cut(tokenizer: ChatTokenizer) -> None:
    assert len(tokenizer.material("word 1 " * 1000)) >= 3000


def test_our_own_words_may_hold_control_tokens(tokenizer: ChatTokenizer) -> None:
    token = next(token for token in CONTROL if len(tokenizer.trusted(token)) == 1)
    assert tokenizer.added.issuperset(tokenizer.trusted(token))


# --- labels ---


def test_digits_are_one_token_each_after_the_slot(tokenizer: ChatTokenizer) -> None:
    ids = tokenizer.label_ids("Score: ", DIGITS)
    assert ids is not None
    assert len(set(ids)) == 10
    stem = tokenizer.trusted("Score: ")
    assert [tokenizer.trusted(f"Score: {digit}") for digit in DIGITS] == [[*stem, i] for i in ids]


def test_in_the_embedded_model_letters_need_the_second_slot(embedded_model: Path) -> None:
    tokenizer = ChatTokenizer(str(embedded_model))
    assert tokenizer.label_ids("Score: ", LETTERS) is None
    ids = tokenizer.label_ids("Score:\n", LETTERS)
    assert ids is not None
    assert len(set(ids)) == len(LETTERS)


@pytest.mark.parametrize("labels", [("5", "10"), ("good", "maybe not"), ("5", "5")])
def test_labels_of_two_tokens_or_of_one_id_are_refused(
    tokenizer: ChatTokenizer, labels: tuple[str, ...]
) -> None:
    assert tokenizer.label_ids("Score: ", labels) is None


def test_a_control_token_is_no_label(tmp_path: Path) -> None:
    assert llama(tmp_path, llama3.TRIMS).label_ids("Score: ", ("5", "</think>")) is None


# --- the frame ---


@pytest.mark.parametrize("template", [llama3.TRIMS, llama3.REFUSES_SYSTEM, llama3.DROPS_SYSTEM])
def test_the_system_message_is_there_whatever_the_template_does_with_it(
    tmp_path: Path, template: str
) -> None:
    tokenizer = llama(tmp_path, template)
    frame = tokenizer.frame("You judge.")
    raw = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    head, tail = raw.decode(frame.head, False), raw.decode(frame.tail, False)
    assert head.count("You judge.") == 1
    assert head.startswith("<|begin_of_text|>")
    assert tail == "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    turns = 2 if template == llama3.TRIMS else 1
    assert head.count("<|start_header_id|>") == turns
    if turns == 2:
        assert head.endswith("<|start_header_id|>user<|end_header_id|>\n\n")
    else:
        assert head.endswith("You judge.\n\n")


def test_the_embedded_models_frame_is_its_chat_templates(embedded_model: Path) -> None:
    frame = ChatTokenizer(str(embedded_model)).frame("You judge.")
    raw = Tokenizer.from_file(str(embedded_model / "tokenizer.json"))
    start = "<|im_start|>system\nYou judge.<|im_end|>\n<|im_start|>user\n"
    assert raw.decode(frame.head, False) == start
    assert raw.decode(frame.tail, False) == "<|im_end|>\n<|im_start|>assistant\n"


def test_a_turn_that_begins_with_open_thinking_is_closed_before_the_slot(tmp_path: Path) -> None:
    tokenizer = llama(tmp_path, llama3.THINKS)
    tail = list(tokenizer.frame("You judge.").tail)
    (opened,), (closed,) = tokenizer.trusted("<think>"), tokenizer.trusted("</think>")
    assert tail.count(opened) == tail.count(closed) == 1
    assert tail.index(opened) < tail.index(closed)


def test_a_template_that_reads_the_clock_always_reads_the_same(tmp_path: Path) -> None:
    tokenizer = llama(tmp_path, llama3.DATED)
    raw = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    head = raw.decode(tokenizer.frame("You judge.").head, False)
    assert head.count("1 January 2026") == 2


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (llama3.NONE, "no chat template"),
        (llama3.REPEATS_USER, "exactly once"),
        ("{{ raise_exception('not now') }}", "exactly once"),
        ("{{ messages[0]['content'] }}{% if", "exactly once"),
    ],
)
def test_a_template_that_cannot_frame_evidence_is_refused(
    tmp_path: Path, template: str, problem: str
) -> None:
    with pytest.raises(EngineFailed, match=problem):
        llama(tmp_path, template).frame("You judge.")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="cannot be loaded"):
        ChatTokenizer(str(tmp_path))
