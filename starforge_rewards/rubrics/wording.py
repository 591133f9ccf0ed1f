"""How a criterion is worded: a label or an instruction, what it leaves unsaid, what it is close to.

Small rules that are right for most texts, for advice only. They know English.
"""

import re
from difflib import get_close_matches
from typing import NamedTuple

_LONGEST_LABEL = 3
"""Words. `Is it clear?` is a label still."""
_OVERLAP = 0.8
"""Share of common words from which two descriptions may say the same."""
_CLOSE = 0.8
"""Difflib's ratio from which two words are one word in another form or spelling."""
_MOST_DIFFERENT = 8
"""Words on either side that are looked at so."""

# Chinese and Japanese write no spaces: each character counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['\u2019][^\W_]+)?")
_DENIAL = {"no", "not", "never", "without", "neither", "nor", "cannot", "none", "nothing", "nobody"}
_FAILURE = re.compile(
    r"fail|wrong|incorrect|false|miss(?!ion)|omit|lack|contradict|invent|absen|fabricat|hallucinat"
    r"|violat|penal|mislead|irrelevant|incomplete|unsupported|unclear|instead|rather|unless|except"
    r"|otherwise|avoid|only if|at most|worse|worst|\bbad|\bpoor|zero|lowest"
)
_ENGLISH = {"the", "is", "are", "of", "to", "and", "that", "it", "every", "with", "each", "any"} | {
    *("all", "when", "where", "this")
}
_FILLER = {
    *("a", "an", "the", "of", "to", "in", "on", "for", "and", "or", "is", "are", "be", "it", "its"),
    *("that", "this", "with", "by", "as", "at", "from", "how", "does", "do", "text", "overall"),
    *("answer", "answers", "response", "responses", "reply", "replies", "output", "general"),
    *("quality", "each", "every", "any", "all"),
}
_CONCEPTS = {
    word: words.split()[0]
    for words in (
        "clear clarity clearness readable readability legible legibility understandable"
        " comprehensible comprehensibility intelligible intelligibility",
        "accurate accuracy correct correctness factual factuality factually truthful truthfulness"
        " truth true right",
        "concise conciseness concision brief brevity succinct succinctness terse short",
        "complete completeness thorough thoroughness comprehensive comprehensiveness coverage"
        " exhaustive",
        "relevant relevance relevancy pertinent pertinence topicality",
        "helpful helpfulness useful usefulness utility",
        "polite politeness courteous courtesy respectful tone friendliness friendly",
        "safe safety harmless harmlessness",
        "coherent coherence consistent consistency logical",
        "faithful faithfulness grounded groundedness",
        "fluent fluency grammatical grammar",
    )
    for word in words.split()
}


class Read(NamedTuple):
    """A criterion's words, without the small ones, each by what it stands for."""

    name: frozenset[str]
    description: frozenset[str]


def read(name: str, description: str) -> Read:
    """What `alike` compares of a criterion."""
    return Read(_meant(name), _meant(description))


def alike(one: Read, other: Read) -> bool:
    """Whether two criteria ask nearly the same.

    Their names come to the same words, synonyms of usual labels included; or one's description has
    nearly all words of the other's, spelling aside, and a few more at most. Where each has a word
    of its own, or they differ in a number or a denial, they are about different things.
    """
    if one.name and one.name == other.name:
        return True
    ours, theirs = one.description - other.description, other.description - one.description
    either = one.description | other.description
    if not either or max(len(ours), len(theirs)) > _MOST_DIFFERENT or _distinct(ours | theirs):
        return False
    own, their_own = _foreign(ours, theirs), _foreign(theirs, ours)
    return not (own and their_own) and len(own or their_own) <= (1 - _OVERLAP) * len(either)


def is_label(name: str, description: str) -> bool:
    """Whether a description only names a quality, or says the criterion's name again."""
    words = _words(description)
    return len(words) <= _LONGEST_LABEL or words == _words(name)


def lacks_failure(description: str) -> bool:
    """Whether an English description has no word for what is not so, or goes wrong."""
    words = set(_words(description))
    denied = words & _DENIAL or any(word.endswith("n't") for word in words)
    return bool(words & _ENGLISH) and not denied and not _FAILURE.search(description.lower())


def _words(text: str) -> list[str]:
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]


def _meant(text: str) -> frozenset[str]:
    kept = [word for word in _words(text) if word not in _FILLER]
    return frozenset(_CONCEPTS.get(word) or _stem(word) for word in kept)


def _stem(word: str) -> str:
    """`cites` and `citing` as `cit`."""
    for ending in ("ness", "ing", "ity", "ies", "es", "ed", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def _foreign(words: frozenset[str], others: frozenset[str]) -> list[str]:
    """The words that are none of the others in another form."""
    return [word for word in words if not get_close_matches(word, others, 1, _CLOSE)]


def _distinct(words: frozenset[str]) -> bool:
    """Whether two texts that differ in these words are about different things."""
    return any(word in _DENIAL or word.endswith("n't") or word[:1].isdigit() for word in words)
