"""Rubrics, runs and their differences as text: YAML that can be written again, and table cells.

What users wrote is shown as they wrote it: none of it is markup.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime

import yaml
from pydantic import JsonValue
from rich.table import Table
from rich.text import Text

from starforge_rewards.cli import screen
from starforge_rewards.registry.records import Revision
from starforge_rewards.rubrics.diff import Diff
from starforge_rewards.rubrics.lint import Advice
from starforge_rewards.run import Role, Runner

_ODD = re.compile(r"[\r\x80-\x9f\u2028\u2029\ufeff]|\n\Z")


def show(text: str) -> None:
    """Print text as it is, however long its lines."""
    screen.out.print(text, markup=False, soft_wrap=True)


def show_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """The first column names the row: it stays in one piece."""
    first, *more = columns
    table = Table()
    table.add_column(first, no_wrap=True, overflow="fold")
    for name in more:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    screen.out.print(table)


def show_next(cursor: str | None) -> None:
    """Say that there is another page, to a person."""
    if cursor is not None:
        screen.err.print(f"more: --cursor {cursor}", markup=False, soft_wrap=True)


def show_diff(before: object, after: object, found: Diff) -> None:
    """Each field that changes, and who is asked again."""
    show(f"{before} -> {after}")
    for change in found.changes:
        show(change.field)
        for sign, style, value in (("-", "red", change.before), ("+", "green", change.after)):
            lines = "" if value is None else _value(value)
            for line in lines.split("\n") if lines else ():
                screen.out.print(Text(f"  {sign} {line}", style=style), soft_wrap=True)
    again = ", ".join(found.asked_again) or "nothing"
    show(f"asked again: {again}" if found.changes else "nothing changes")


def show_advice(advice: Iterable[Advice], *, aside: bool = False) -> None:
    """One line for each; `aside`: to standard error."""
    console = screen.err if aside else screen.out
    for one in advice:
        said = f"{one.field}: {one.said} [{one.rule}]"
        console.print(said, markup=False, soft_wrap=True)


def revision_text(revision: Revision) -> str:
    """A version's whole text: a file that may be put again."""
    about = (
        f"# {revision.ref}, {revision.kind}, by {revision.author}, {moment(revision.created_at)}"
    )
    return f"{about}\n{as_yaml(revision.rubric)}"


def as_yaml(data: JsonValue) -> str:
    """A YAML document, in the order of its keys and without the last line's end."""
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text.rstrip("\n")


def moment(time: datetime) -> str:
    """A time for people, to the minute."""
    return f"{time:%Y-%m-%d %H:%M %Z}"


def role_text(role: Role, runner: Runner | None) -> str:
    """What a run cites a rubric as."""
    return f"{role} ({runner})" if runner else role


def number(value: float | None) -> str:
    """A score in a cell; nothing where there is none."""
    return "" if value is None else f"{value:.4g}"


class _Dumper(yaml.SafeDumper):
    """Keeps the lines of a text as lines."""


def _quoted(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # PyYAML would write these as they are, and read them as other ends of lines.
    odd = _ODD.search(text)
    style = '"' if odd else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


def _value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
