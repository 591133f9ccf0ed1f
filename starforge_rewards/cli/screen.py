"""What commands print, and how they end: 0 done, 1 the thing asked about is not so, 2 bad input."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from starforge_rewards.errors import (
    Forbidden,
    InputError,
    NotFound,
    StarforgeError,
    Unauthorized,
)

_UNUSABLE = InputError | NotFound | Unauthorized | Forbidden

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells and typer have it."""


AsOwner = Annotated[
    str | None,
    typer.Option("--as", help="Work on the database directly, as this owner (SF_DATABASE_URL)."),
]


class Results(Console):
    """Standard output. Where nobody takes it, what was done is done: the rest goes nowhere."""

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError as error:  # a full disk
            err.print(f"cannot print the results: {error.strerror}", soft_wrap=True)
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Rich would end the process with 1."""
        self.quiet = True
        with suppress(OSError):  # what is still held back would fail once more at the exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


out = Results(highlight=False, emoji=False)
"""Results."""
err = Console(stderr=True, highlight=False, emoji=False)
"""Progress and problems, so that results can be piped."""


def tell(said: str) -> None:
    """A sentence for a person who waits."""
    err.print(f"[dim]{escape(said)}[/dim]")


def print_json(data: Mapping[str, object]) -> None:
    """For machines: one JSON object on one line."""
    out.print(json.dumps(data), soft_wrap=True, markup=False)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with count, time and time left; what it yields moves it on by so many."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


def explain(error: BaseException) -> int:
    """Print a problem in one line for each and give the exit code that it means."""
    code, said = 0, set[str]()
    for one in _leaves(error):
        if isinstance(one, KeyboardInterrupt | SystemExit):
            err.print("interrupted: what is done is kept; the same command goes on from there")
            return INTERRUPTED
        if not isinstance(one, StarforgeError):
            raise error
        if str(one) not in said:  # what works together fails together
            err.print(f"[red]error:[/red] {escape(str(one))}", soft_wrap=True)
        said.add(str(one))
        code = max(code, 2 if isinstance(one, _UNUSABLE) else 1)
    return code


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
