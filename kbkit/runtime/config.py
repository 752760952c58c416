"""Settings from the environment and a project's file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

from kbkit.errors import ConfigError
from kbkit.models.values import did_you_mean
from kbkit.paths import bytes_of

DEFAULT_USER_AGENT = "kbkit/0.1 (+https://kbkit.github.io/kbkit/)"
HUB = "https://huggingface.co"
_MAX_LENGTH = 86_400  # a day, in seconds
_MAX = 1_000  # parts of a context

CRAWL_PROVIDERS = ("trafilatura", "browser", "firecrawl")
"""Providers of web pages; the first is the default."""
IMPROVE_MODES = ("background", "wait", "off")
"""Modes of background embedding; the first is the default."""

FILES = ("kbkit.toml", "pyproject.toml")
"""Settings files of a project; the second uses ``[tool.kbkit]``."""


def _default_models() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("kbkit", appauthor=False)) / "models"


def _text(_label: str, text: str) -> str:
    return text


def _path(_label: str, text: str) -> Path:
    return Path(text).expanduser()


def _absolute(label: str, text: str) -> Path:
    return _path(label, text).absolute()


def _one_of(*choices: str) -> Callable[[str, str], str]:
    def read(label: str, text: str) -> str:
        if text not in choices:
            meant = did_you_mean(text, choices, f"choose from {' or '.join(choices)}")
            raise ConfigError(f"{label}: unknown value {text!r}; {meant}")
        return text

    return read


def _on_or_off(label: str, text: str) -> bool:
    return _one_of("1", "0")(label, text) == "1"


def _count(least: int) -> Callable[[str, str], int]:
    def read(label: str, text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= _MAX):
            raise ConfigError(
                f"{label}: not a whole number from {least} to {_MAX:,}; set it to one, or unset it"
            )
        return int(text)

    return read


def _seconds(label: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _MAX_LENGTH:  # sockets refuse much longer timeouts
        raise ConfigError(
            f"{label}: not a number above 0 and at most {_MAX_LENGTH:,}; set it to seconds, "
            "or unset it"
        )
    return value


class _Setting(NamedTuple):
    read: Callable[[str, str], Any]
    """Parses a label for errors and a text."""
    others: tuple[str, ...] = ()
    in_file: bool = True
    """Whether a project's file may set it: no programs, no code locations, no secrets."""


_Text = Annotated[str, _Setting(_text)]
_Private = Annotated[str, _Setting(_text, in_file=False)]
_Count = Annotated[int, _Setting(_count(0))]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from the environment and the project's file.

    Attributes:
        workspace: ``KBKIT_WORKSPACE``, folder of the workspace; default ``./kb``.
        database_url: ``KBKIT_DATABASE_URL``, a PostgreSQL server for the catalog, as
            ``postgresql+psycopg://USER:PASSWORD@HOST:PORT/DATABASE``, so that many machines share
            one workspace; by default a file in the workspace's folder.
        chroma_url: ``KBKIT_CHROMA_URL``, a Chroma server for vectors, as ``http://HOST:PORT`` or
            ``https://HOST``, optionally with ``?tenant=NAME&database=NAME``; by default Chroma runs
            in the workspace's folder.
        pgvector: ``KBKIT_PGVECTOR``, ``1`` (the default) or ``0``: whether a catalog on a server
            also indexes vectors, if the server has pgvector and no Chroma server is set.
        chroma_token: ``KBKIT_CHROMA_TOKEN``, token for that server or its proxy; none by default.
        user_agent: ``KBKIT_USER_AGENT``, user agent of the crawler; robots.txt rules for ``kbkit``
            apply to it.
        timeout: ``KBKIT_TIMEOUT``, maximum seconds of a request; default 30.
        crawl_provider: ``KBKIT_CRAWL_PROVIDER``, the default provider of web pages: ``trafilatura``
            (kbkit's own crawler, the default), ``browser`` (the same with a local Chromium) or
            ``firecrawl``.
        browser: ``KBKIT_BROWSER``, path of Chromium; by default one on the path, else Playwright's.
        browser_sandbox: ``KBKIT_BROWSER_SANDBOX``, ``1`` (the default) or ``0``: whether the
            browser uses its sandbox, which is impossible as root.
        improve: ``KBKIT_IMPROVE``, when models embed many new summaries and chunks: in the
            ``background`` (the default), before an ingest returns (``wait``), or only with `kbkit
            improve` (``off``). Until then static vectors serve searches.
        minilm_chunks: ``KBKIT_MINILM_CHUNKS``, up to how many chunks the embedding ``auto`` uses
            MiniLM, which embeds about 60 a second on two cores; default 20,000, 0 for never.
        rater: ``KBKIT_RATER``, name that ratings are stored under; default the login name.
        models: ``KBKIT_MODELS``, folder of fetched embedding models; by default in the user's data
            folder.
        models_url: ``KBKIT_MODELS_URL``, or else ``HF_ENDPOINT``: the hub of `kbkit models fetch`;
            default the Hugging Face Hub.
        top_k: ``KBKIT_TOP_K``, maximum passages of a context; default 3.
        max_entities: ``KBKIT_MAX_ENTITIES``, maximum entities of a context; default 5.
        max_entries: ``KBKIT_MAX_ENTRIES``, maximum entries of a context; default 20.
        auto_learn: ``KBKIT_AUTO_LEARN``, a folder of task folders: the ``.knowledge`` of finished
            tasks becomes entries when entries are synced and while `kbkit watch` runs; none by
            default.
        panel_token: ``KBKIT_PANEL_TOKEN``, token for visitors of `kbkit panel`; by default a new
            one each time.
    """

    workspace: Annotated[Path, _Setting(_path)] = Path("kb")
    user_agent: _Text = DEFAULT_USER_AGENT
    timeout: Annotated[float, _Setting(_seconds)] = 30.0
    rater: Annotated[str, _Setting(_text, ("USER", "USERNAME"))] = "anonymous"
    crawl_provider: Annotated[str, _Setting(_one_of(*CRAWL_PROVIDERS))] = CRAWL_PROVIDERS[0]
    browser: _Private = ""
    browser_sandbox: Annotated[bool, _Setting(_on_or_off, in_file=False)] = True
    improve: Annotated[str, _Setting(_one_of(*IMPROVE_MODES))] = IMPROVE_MODES[0]
    minilm_chunks: _Count = 20_000
    top_k: Annotated[int, _Setting(_count(1))] = 3
    max_entities: _Count = 5
    max_entries: _Count = 20
    auto_learn: Annotated[Path | None, _Setting(_absolute, in_file=False)] = None
    panel_token: _Private = field(default="", repr=False)
    models: Annotated[Path, _Setting(_absolute, in_file=False)] = field(
        default_factory=_default_models
    )
    models_url: Annotated[str, _Setting(_text, ("HF_ENDPOINT",), in_file=False)] = HUB
    database_url: _Private = field(default="", repr=False)
    pgvector: Annotated[bool, _Setting(_on_or_off)] = True
    chroma_url: _Private = field(default="", repr=False)
    chroma_token: _Private = field(default="", repr=False)

    @classmethod
    def load(
        cls, environment: Mapping[str, str] | None = None, *, folder: Path | None = None
    ) -> Settings:
        return cls(**{each.name: each.value for each in setting_values(environment, folder=folder)})


_SETTINGS: dict[str, _Setting] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Settings, include_extras=True).items()
}


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting, and where its value comes from.

    Attributes:
        name: Attribute of `Settings`.
        origin: A variable, a file, or ``default``.
    """

    name: str
    value: Any
    origin: str


def setting_values(
    environment: Mapping[str, str] | None = None, *, folder: Path | None = None
) -> list[SettingValue]:
    """Return all settings with their origins.

    A variable of the environment takes precedence over the file, and the file over the default.
    """
    variables = os.environ if environment is None else environment
    path, values = None, dict[str, str]()
    if environment is None or folder is not None:
        path, values = _project_file((folder or Path.cwd()).absolute())
    settings, defaults = [], Settings()
    for name, setting in _SETTINGS.items():
        read: Any = None
        if path is not None and name in values:  # report its errors even if a variable wins
            read, origin = setting.read(f"{path}: {name}={values[name]}", values[name]), str(path)
            if isinstance(read, Path):
                read = path.parent / read
        variable = _variable(name)
        if text := variables.get(variable):
            read, origin = setting.read(f"{variable}={text}", text), variable
        elif name in values:
            pass
        elif other := next((each for each in setting.others if variables.get(each)), ""):
            read, origin = variables[other], other
        else:
            read, origin = getattr(defaults, name), "default"
        settings.append(SettingValue(name, read, origin))
    return settings


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    variables = os.environ if environment is None else environment
    allowed = list(map(_variable, _SETTINGS))
    return [
        f"{name}: {_unknown(name, allowed)}"
        for name in sorted(variables)
        if name.startswith("KBKIT_") and name not in allowed
    ]


def _project_file(folder: Path) -> tuple[Path | None, dict[str, str]]:
    """Find the nearest settings file, up to the repository's root.

    Files of other users are ignored: anyone can put one into a shared folder.
    """
    home = Path.home()
    for place in (folder, *folder.parents):
        for name in FILES:
            path = place / name
            table = _table(path) if _is_own(path) else None
            if table is not None:
                return path, table
        # `Path.exists` raises for an unreadable folder
        if os.path.exists(place / ".git") or place == home:  # noqa: PTH110
            break
    return None, {}


def _is_own(path: Path) -> bool:
    try:
        owner = path.stat().st_uid
    except OSError:
        return False
    return os.name != "posix" or owner in (0, os.getuid())


def _table(path: Path) -> dict[str, str] | None:
    """Read the settings of a file; ``None`` if it has none."""
    import tomllib

    try:
        text = bytes_of(path).decode()
        if path.name == FILES[1] and "kbkit" not in text:
            return None
        values: Any = tomllib.loads(text)
    except (OSError, ValueError) as error:
        if path.name == FILES[1]:  # other tools report it
            return None
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error
    if path.name == FILES[1]:
        values = values.get("tool", {}).get("kbkit")
        if values is None:
            return None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: tool.kbkit is not a table; write [tool.kbkit] above its keys")
    for key, value in values.items():
        if key not in _SETTINGS:
            raise ConfigError(f"{path}: {key}: {_unknown(key, list(_SETTINGS))}")
        if not _SETTINGS[key].in_file:
            raise ConfigError(
                f"{path}: {key}: not allowed in a file; set {_variable(key)} in the environment"
            )
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ConfigError(f"{path}: {key}={value!r}: give a text or a number")
    return {key: str(value) for key, value in values.items()}


def _variable(name: str) -> str:
    return f"KBKIT_{name.upper()}"


def _unknown(name: str, names: list[str]) -> str:
    return f"unknown setting; {did_you_mean(name, names)}"
