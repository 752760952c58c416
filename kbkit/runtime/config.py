"""Settings from the environment and a project's file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from kbkit.errors import ConfigError
from kbkit.models.values import did_you_mean, fault_reason
from kbkit.paths import bytes_of

DEFAULT_USER_AGENT = "kbkit/0.1 (+https://kbkit.github.io/kbkit/)"
HUB = "https://huggingface.co"
_MIN_LENGTH, _MAX_LENGTH = 0.001, 86_400  # in seconds; sockets refuse much longer timeouts
_MAX = 1_000  # parts of a context

CrawlProvider = Literal["trafilatura", "browser", "firecrawl"]
"""Providers of web pages."""
ImproveMode = Literal["background", "wait", "off"]
"""Modes of background embedding."""

FILES = ("kbkit.toml", "pyproject.toml")
"""Settings files of a project; the second uses ``[tool.kbkit]``."""


def _default_models() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("kbkit", appauthor=False)) / "models"


class _Setting(NamedTuple):
    low: float | None = None
    high: float | None = None
    others: tuple[str, ...] = ()
    in_file: bool = True
    """Whether a project's file may set it: no programs, no code locations, no secrets."""

    def read(self, kind: Any, label: str, text: str) -> Any:
        """Parse a text; ``label`` names it in errors."""
        from pydantic import Field, TypeAdapter, ValidationError

        limited: Any = Annotated[kind, Field(ge=self.low, le=self.high)] if self.high else kind
        try:
            value = TypeAdapter(limited).validate_python(text)
        except ValidationError as error:
            raise ConfigError(f"{label}: {fault_reason(error.errors()[0])}") from None
        if isinstance(value, Path):
            value = value.expanduser()
            return value if self.in_file else value.absolute()
        return value


_Text = Annotated[str, _Setting()]
_Private = Annotated[str, _Setting(in_file=False)]
_Count = Annotated[int, _Setting(0, _MAX)]


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

    workspace: Annotated[Path, _Setting()] = Path("kb")
    user_agent: _Text = DEFAULT_USER_AGENT
    timeout: Annotated[float, _Setting(_MIN_LENGTH, _MAX_LENGTH)] = 30.0
    rater: Annotated[str, _Setting(others=("USER", "USERNAME"))] = "anonymous"
    crawl_provider: Annotated[CrawlProvider, _Setting()] = "trafilatura"
    browser: _Private = ""
    browser_sandbox: Annotated[bool, _Setting(in_file=False)] = True
    improve: Annotated[ImproveMode, _Setting()] = "background"
    minilm_chunks: Annotated[int, _Setting(0, sys.maxsize)] = 20_000
    top_k: Annotated[int, _Setting(1, _MAX)] = 3
    max_entities: _Count = 5
    max_entries: _Count = 20
    auto_learn: Annotated[Path | None, _Setting(in_file=False)] = None
    panel_token: _Private = field(default="", repr=False)
    models: Annotated[Path, _Setting(in_file=False)] = field(default_factory=_default_models)
    models_url: Annotated[str, _Setting(others=("HF_ENDPOINT",), in_file=False)] = HUB
    database_url: _Private = field(default="", repr=False)
    pgvector: Annotated[bool, _Setting()] = True
    chroma_url: _Private = field(default="", repr=False)
    chroma_token: _Private = field(default="", repr=False)

    @classmethod
    def load(
        cls, environment: Mapping[str, str] | None = None, *, folder: Path | None = None
    ) -> Settings:
        return cls(**{item.name: item.value for item in setting_values(environment, folder=folder)})

    def variables(self) -> dict[str, str]:
        """Return the variables from which `load` makes these settings, in another process."""
        values = {_variable(item.name): getattr(self, item.name) for item in fields(self)}
        return {name: "" if value is None else str(value) for name, value in values.items()}


_SETTINGS: dict[str, tuple[Any, _Setting]] = {
    name: (hint.__origin__, hint.__metadata__[0])
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
    for name, (kind, setting) in _SETTINGS.items():
        parsed: Any = None
        if path is not None and name in values:  # report its errors even if a variable wins
            label, origin = f"{path}: {name}={values[name]}", str(path)
            parsed = setting.read(kind, label, values[name])
            if isinstance(parsed, Path):
                parsed = path.parent / parsed
        variable = _variable(name)
        if text := variables.get(variable):
            parsed, origin = setting.read(kind, f"{variable}={text}", text), variable
        elif name in values:
            pass
        elif fallback := next((other for other in setting.others if variables.get(other)), ""):
            parsed, origin = variables[fallback], fallback
        else:
            parsed, origin = getattr(defaults, name), "default"
        settings.append(SettingValue(name, parsed, origin))
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
        if not _SETTINGS[key][1].in_file:
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
