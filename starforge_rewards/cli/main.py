"""The command's entry: gathers the commands and turns errors into exit codes."""

import sys

import typer

from starforge_rewards import __version__
from starforge_rewards.cli import demo, env, judge, rubric, score, serve, token
from starforge_rewards.cli import run as runs
from starforge_rewards.cli.screen import INTERRUPTED, explain, out

app = typer.Typer(
    name="starforge",
    help="One versioned rubric as training reward, benchmark and safety evaluation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.add_typer(env.app, name="env")
app.add_typer(judge.app, name="judge")
app.add_typer(rubric.app, name="rubric")
app.add_typer(runs.app, name="run")
app.add_typer(token.app, name="token")


@app.callback(invoke_without_command=True)
def options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """One versioned rubric as training reward, benchmark and safety evaluation."""
    if version:
        out.print(__version__)
        raise typer.Exit


def run() -> None:
    """Run the command line; expected problems are one line and an exit code, never a traceback."""
    try:
        app()
    except BaseException as error:  # a group of ours may come from any task
        if isinstance(error, SystemExit) and error.code != INTERRUPTED:  # typer's own ends
            raise
        sys.exit(explain(error))
