import json
import sys

import pytest

from starforge_rewards import __version__
from starforge_rewards.cli import main, screen
from starforge_rewards.errors import EngineFailed, InputError, NotFound

BAD = InputError("unknown key", file="r.yaml", line=3, field="criteria[0].w")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BAD, 2),
        (NotFound("no rubric a/b"), 2),
        (EngineFailed("no GPU"), 1),
        (ExceptionGroup("", [EngineFailed("no GPU"), BAD]), 2),
        (ExceptionGroup("", [ExceptionGroup("", [EngineFailed("no GPU")])]), 1),
    ],
)
def test_a_problem_means_its_exit_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert screen.explain(error) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert all(line.startswith("error: ") for line in said.err.splitlines())


def test_a_problem_is_one_line_with_its_place_as_it_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = "[red]:smile:[/red] " + "x" * 300
    screen.explain(InputError(named, file="r.yaml", line=3, field="criteria[0].w"))
    assert capsys.readouterr().err == f"error: r.yaml:3: criteria[0].w: {named}\n"


def test_what_failed_together_for_one_reason_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    errors = [EngineFailed("no GPU"), EngineFailed("no GPU"), EngineFailed("no Ray")]
    screen.explain(ExceptionGroup("", [*errors, ExceptionGroup("", errors)]))
    assert capsys.readouterr().err == "error: no GPU\nerror: no Ray\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), ExceptionGroup("", [BAD, KeyError("x")])])
def test_what_nobody_expected_keeps_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        screen.explain(error)
    assert caught.value is error


def test_an_interrupt_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert screen.explain(BaseExceptionGroup("", [KeyboardInterrupt()])) == 130
    assert "goes on from there" in capsys.readouterr().err


def test_json_is_one_line_however_long_and_whatever_it_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data: dict[str, object] = {"a": "x" * 500, "b": "[bold]:smile:[/bold]\n", "c": {"d": [1, None]}}
    screen.print_json(data)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == data


def test_progress_and_sentences_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen.tell("Starting [2] engines")
    with screen.progress("Scoring", 3) as advance:
        advance(2)
        advance(1)
    said = capsys.readouterr()
    assert said.out == ""
    assert "Starting [2] engines" in said.err
    assert "3/3" in said.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["score", "--help"], 0),
        (["score"], 2),
        (["scores"], 2),
    ],
)
def test_the_command_line_ends_as_usual(
    args: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["starforge", *args])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert (ended.value.code or 0) == code
    said = capsys.readouterr()
    if args == ["--version"]:
        assert said.out == f"{__version__}\n"
