"""Numbers as people read them."""


def number(value: float | None) -> str:
    """To four decimals; a dash where there is none."""
    return "–" if value is None else f"{value:.4f}".rstrip("0").rstrip(".")  # noqa: RUF001


def exact(value: float) -> str:
    """As it was written."""
    return repr(value).removesuffix(".0")
