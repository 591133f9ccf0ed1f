"""What the process environment says (`SF_*`), and where the files that ship with us lie."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, SecretStr

from starforge_rewards.errors import InputError


class Settings(BaseModel):
    """The `SF_*` variables of one process."""

    model_config = ConfigDict(frozen=True)

    cache_dir: Path
    """Verdict cache and prepared models (`SF_CACHE_DIR`)."""
    url: str | None = None
    """The server that rubrics and runs are kept on (`SF_URL`)."""
    token: SecretStr | None = None
    """What that server knows us by (`SF_TOKEN`)."""
    database_url: str | None = None
    """The database of rubrics and runs, used directly (`SF_DATABASE_URL`)."""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """The settings.

        Raises:
            InputError: the cache's folder begins with the home of nobody.
        """
        cache = environ.get("SF_CACHE_DIR") or "~/.cache/starforge_rewards"
        try:
            return cls(
                cache_dir=Path(cache).expanduser(),
                url=environ.get("SF_URL") or None,
                token=SecretStr(token) if (token := environ.get("SF_TOKEN")) else None,
                database_url=environ.get("SF_DATABASE_URL") or None,
            )
        except RuntimeError as error:
            said = f"{cache}: {error}: name another folder"
            raise InputError(said, field="SF_CACHE_DIR") from None


def default_database() -> str:
    """Where rubrics and runs are kept when nobody says otherwise: a file in the user's data."""
    data = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser()
    return f"sqlite:///{data / 'starforge_rewards' / 'registry.sqlite'}"


def shipped(*parts: str) -> Path:
    """A file that ships with the project: from the wheel where installed, else from the checkout.

    `shipped("configs", "rubrics")` is the folder of the shipped rubrics.
    """
    package = Path(__file__).parent
    wheel = package / "shipped"
    return (wheel if wheel.is_dir() else package.parent).joinpath(*parts)
