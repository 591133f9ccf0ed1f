"""A function that somebody names as `module:function`: the border to code that is not ours."""

import importlib
from collections.abc import Callable
from typing import Any, Literal

from starforge_rewards.errors import InputError


def load(named: str, *, field: str, kind: Literal["function", "callable"]) -> Callable[..., Any]:
    """The function of that name.

    Args:
        named: `module:function`.
        field: where it was written, for errors.
        kind: what it is called there.

    Raises:
        InputError: it is written otherwise, does not import, or is not there.
    """
    module_name, _, name = named.partition(":")
    if not module_name or not name:
        raise InputError(f"{named!r} is not of the form module:{kind}", field=field)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a border: importing runs code that is not ours
        problem = f"cannot import {module_name}: {type(error).__name__}: {error}"
        raise InputError(problem, field=field) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError(f"{module_name} has no {kind} {name}", field=field)
    found: Callable[..., Any] = function
    return found
