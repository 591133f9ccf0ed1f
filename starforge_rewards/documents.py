"""Files that people write: YAML or JSON mappings and JSONL rows, read into frozen models.

Every problem is an `InputError` that names file, line and field.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from starforge_rewards.errors import InputError, first_problem

Model = TypeVar("Model")


def read_text(path: Path) -> str:
    """A file's UTF-8 text.

    Raises:
        InputError: absent, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8: save it as UTF-8", file=path, line=line) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None


def load(path: Path, model: type[Model] | TypeAdapter[Model]) -> Model:
    """One YAML document, or JSON in a file named `.json`, as a model.

    Raises:
        InputError: unreadable, not YAML or JSON, a key twice, or refused by the model.
    """
    text = read_text(path)
    node, data = _json(text, path) if path.suffix.lower() == ".json" else _yaml(text, path)
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        line = _line_of(node, first_problem(error, data).loc)
        raise InputError.of(error, file=path, line=line, data=data) from None


def records(path: Path) -> Iterator[tuple[int, object]]:
    """The JSON values of a JSONL file with their line numbers, from 1; blank lines are passed over.

    Raises:
        InputError: at the first line that is not JSON.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield number, _record(line, path, number)
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from None


def parse_json(text: str) -> object:
    """JSON as its standard has it: no key twice, and no number that is none or too large.

    Raises:
        ValueError: it is not.
        RecursionError: nested too deeply.
    """
    return json.loads(
        text, parse_constant=_not_a_number, parse_float=_finite, object_pairs_hook=_unique
    )


def _yaml(text: str, path: Path) -> tuple[yaml.Node | None, object]:
    """The document with its lines, and its data."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"not YAML: {error.problem}", file=path, line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"not YAML: {error.reason}", file=path, line=line) from None
    # PyYAML's constructors raise LookupError and AttributeError for such as `!!int ''`.
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"not YAML: {error}", file=path) from None
    _refuse_repeated_keys(node, path)
    return node, data


def _json(text: str, path: Path) -> tuple[yaml.Node | None, object]:
    """JSON is not read as YAML, which has other numbers and no pairs of escaped surrogates."""
    try:
        data = parse_json(text)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", file=path, line=error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=path) from None
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader), data
    except (yaml.YAMLError, RecursionError):
        return None, data  # tabs, for one: the lines of its fields are not known


def _record(line: bytes, path: Path, number: int) -> object:
    try:
        return parse_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise InputError("not UTF-8: save it as UTF-8", file=path, line=number) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=path, line=number) from None


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large for a number")
    return value


def _not_a_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"key {twice!r} is there twice")
    return data


def _refuse_repeated_keys(root: yaml.Node | None, path: Path) -> None:
    waiting, visited = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in visited:
            continue  # an alias: what it names was looked at
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen = set[str]()
            for key, value in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode):  # `? !!str {=: a}` passes for a text
                    raise InputError("not YAML: a key must be a text", file=path, line=line)
                if key.value in seen:
                    said = "this key is there twice"
                    raise InputError(said, file=path, line=line, field=key.value)
                seen.add(str(key.value))
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)


def _line_of(node: yaml.Node | None, loc: tuple[int | str, ...]) -> int | None:
    """The line of the deepest step of `loc` that the document has."""
    line = None
    for step in loc:
        if isinstance(node, yaml.MappingNode):
            found = next((pair for pair in node.value if pair[0].value == str(step)), None)
            if found is None:
                break  # a key that is missing, or written otherwise (`0x1`) or merged (`<<`)
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line
