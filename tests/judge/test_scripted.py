"""A function as the judge."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from starforge_rewards.errors import InputError
from starforge_rewards.judge.config import Common
from starforge_rewards.judge.protocol import Judge
from starforge_rewards.judge.scripted import ScriptedJudge, load_function
from starforge_rewards.question import (
    Answer,
    Choice,
    Evidence,
    NoAnswer,
    Part,
    Question,
    Reply,
)


def question(text: str) -> Question:
    return Question(
        source="test",
        evidence=Evidence(parts=(Part(name="response", content=text),)),
        instruction="Is it right?",
        choices=(Choice(label="no", value=0.0), Choice(label="yes", value=1.0)),
    )


def says_yes(_: Question) -> str:
    return "yes"


def test_a_returned_label_is_chosen_and_carries_its_value() -> None:
    judge: Judge = ScriptedJudge(says_yes)
    (said,) = asyncio.run(judge.answer([question("a")]))
    assert isinstance(said, Answer)
    assert (said.label, said.value) == ("yes", 1.0)


def test_a_label_that_is_no_choice_is_off_the_scale() -> None:
    (said,) = asyncio.run(ScriptedJudge(lambda _: "maybe").answer([question("a")]))
    assert isinstance(said, NoAnswer)
    assert said.cause == "off_scale"


def test_a_returned_reply_goes_through_as_it_is() -> None:
    failed = NoAnswer.because("timeout", "too slow")
    assert asyncio.run(ScriptedJudge(lambda _: failed).answer([question("a")])) == [failed]


def test_questions_are_counted_and_replies_keep_their_order() -> None:
    first, second = question("yes"), question("no")
    judge = ScriptedJudge(lambda q: str(q.evidence.parts[0].content))
    replies = asyncio.run(judge.answer([first, second]))
    asyncio.run(judge.answer([first]))
    assert [said.label for said in replies if isinstance(said, Answer)] == ["yes", "no"]
    assert judge.asked == [first, second, first]


def test_async_functions_run_at_once_and_replies_keep_their_order() -> None:
    async def main() -> list[Reply]:
        second_ran = asyncio.Event()

        async def function(asked: Question) -> str:
            if asked.evidence.parts[0].content == "first":
                await second_ran.wait()
                return "no"
            second_ran.set()
            return "yes"

        judge = ScriptedJudge(function)
        async with asyncio.timeout(5):
            return await judge.answer([question("first"), question("second")])

    replies = asyncio.run(main())
    assert [said.label for said in replies if isinstance(said, Answer)] == ["no", "yes"]


def test_what_a_function_raises_is_a_mistake_and_no_failed_judgement() -> None:
    def broken(_: Question) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(ScriptedJudge(broken).answer([question("a")]))


def test_a_function_that_returns_a_number_is_refused() -> None:
    judge = ScriptedJudge(lambda _: 5)  # type: ignore[arg-type, return-value]
    with pytest.raises(InputError, match="returned int"):
        asyncio.run(judge.answer([question("a")]))


def test_the_identity_holds_name_and_declared_rules() -> None:
    rules = Common(empty_response="unscored", min_mass=0.1)
    identity = ScriptedJudge(says_yes, name="mine", rules=rules).identity
    assert (identity.weights, identity.engine) == ("scripted", "scripted")
    assert identity.options["name"] == "mine"
    assert (identity.empty_response, identity.min_mass) == ("unscored", 0.1)
    assert identity.digest != ScriptedJudge(says_yes).identity.digest


def test_a_function_is_loaded_by_module_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_judge.py").write_text("def judge(question):\n    return 'no'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_judge", raising=False)
    (said,) = asyncio.run(ScriptedJudge(load_function("own_judge:judge")).answer([question("a")]))
    assert isinstance(said, Answer)
    assert said.label == "no"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("json", "not of the form module:function"),
        (":loads", "not of the form module:function"),
        ("json:", "not of the form module:function"),
        ("no_such_module_anywhere:judge", "cannot import no_such_module_anywhere"),
        (".relative:judge", "cannot import .relative"),
        ("json:no_such_function", "json has no function no_such_function"),
        ("json:__name__", "json has no function __name__"),
    ],
)
def test_a_function_that_is_not_there_is_an_input_error(named: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_function(named)


def test_a_module_that_fails_on_import_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_judge.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"cannot import broken_judge: ZeroDivisionError"):
        load_function("broken_judge:judge")


def test_an_answer_that_is_no_choice_is_off_scale_and_no_number() -> None:
    judge = ScriptedJudge(lambda _question: Answer(label="banana", value=1.0))
    [reply] = asyncio.run(judge.answer([question("a")]))
    assert isinstance(reply, NoAnswer)
    assert reply.cause == "off_scale"


def test_the_identity_changes_with_the_text_of_the_function(tmp_path: Path) -> None:
    digests = set()
    for number in (0, 1):
        source = tmp_path / f"own_{number}.py"
        source.write_text(f"def judge(question):\n    return '{number}'\n")
        space: dict[str, Any] = {}
        exec(compile(source.read_text(), str(source), "exec"), space)  # noqa: S102 - our own text
        digests.add(ScriptedJudge(space["judge"], name="one").identity.digest)
    assert len(digests) == 2
