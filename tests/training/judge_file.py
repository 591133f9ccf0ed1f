"""A judge file of a scripted judge, for adapters that are given a judge by its name."""

from pathlib import Path


def write(folder: Path, function: str = "judge") -> Path:
    """`function` is one of `tests.training.scripted`."""
    file = folder / f"{function}.yaml"
    named = f"tests.training.scripted:{function}"
    file.write_text(f"kind: scripted\nfunction: {named}\nreuse: false\n")
    return file
