"""Settings that come from the environment, read when asked for and never at import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kbkit.errors import ConfigError

DEFAULT_USER_AGENT = "kbkit/0.1 (+https://kbkit.github.io/kbkit/)"
HUB = "https://huggingface.co"
_LONGEST = 86_400  # a day, in seconds


CRAWL_PROVIDERS = ("trafilatura", "browser", "firecrawl")
"""Who can fetch pages of the web; the first is the default."""
IMPROVE_MODES = ("background", "wait", "off")
"""When models embed what static vectors serve meanwhile; the first is the default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says.

    Attributes:
        workspace: ``KBKIT_WORKSPACE``, folder of the workspace; default ``./kb``.
        user_agent: ``KBKIT_USER_AGENT``, how the crawler introduces itself; robots.txt rules
            for ``kbkit`` apply to it.
        timeout: ``KBKIT_TIMEOUT``, seconds that one request may take; default 30.
        crawl_provider: ``KBKIT_CRAWL_PROVIDER``, who fetches pages of the web where a recipe does
            not say: ``trafilatura`` (kbkit's own crawler, the default), ``browser`` (the same, and
            a Chromium here renders the pages) or ``firecrawl``.
        browser: ``KBKIT_BROWSER``, path of the Chromium that renders; by default one on the path,
            else Playwright's own.
        browser_sandbox: ``KBKIT_BROWSER_SANDBOX``, ``1`` (the default) or ``0``: whether it
            contains pages in a sandbox; as root it cannot.
        improve: ``KBKIT_IMPROVE``, when models embed many new cards and chunks, which static
            vectors serve until then: in the ``background`` (the default), before an ingest
            returns (``wait``), or only when `kbkit improve` asks for it (``off``).
        rater: ``KBKIT_RATER``, name that ratings are stored under; default the login name.
        models: ``KBKIT_MODELS``, folder of fetched embedding models; by default the user's folder
            for data of programs.
        models_url: ``KBKIT_MODELS_URL``, or else ``HF_ENDPOINT``: the hub that
            `kbkit models fetch` asks; default the Hugging Face Hub.
        panel_token: ``KBKIT_PANEL_TOKEN``, what visitors of `kbkit panel` must know; by default a
            new one each time.
    """

    workspace: Path
    user_agent: str
    timeout: float
    rater: str
    crawl_provider: str = "trafilatura"
    browser: str = ""
    browser_sandbox: bool = True
    improve: str = "background"
    panel_token: str = field(default="", repr=False)
    models: Path = field(default_factory=lambda: _models({}))
    models_url: str = HUB

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings.

        Args:
            environment: Variables to read instead of the process's own.

        Raises:
            ConfigError: A variable has a value that cannot work.
        """
        variables = os.environ if environment is None else environment
        return cls(
            workspace=Path(variables.get("KBKIT_WORKSPACE") or "kb"),
            user_agent=variables.get("KBKIT_USER_AGENT") or DEFAULT_USER_AGENT,
            timeout=_positive(variables, "KBKIT_TIMEOUT", 30.0),
            rater=variables.get("KBKIT_RATER")
            or variables.get("USER")
            or variables.get("USERNAME")
            or "anonymous",
            crawl_provider=_one_of(variables, "KBKIT_CRAWL_PROVIDER", CRAWL_PROVIDERS),
            browser=variables.get("KBKIT_BROWSER") or "",
            browser_sandbox=_one_of(variables, "KBKIT_BROWSER_SANDBOX", ("1", "0")) == "1",
            improve=_one_of(variables, "KBKIT_IMPROVE", IMPROVE_MODES),
            panel_token=variables.get("KBKIT_PANEL_TOKEN") or "",
            models=_models(variables),
            models_url=variables.get("KBKIT_MODELS_URL") or variables.get("HF_ENDPOINT") or HUB,
        )


def _models(variables: Mapping[str, str]) -> Path:
    if told := variables.get("KBKIT_MODELS"):
        return Path(told).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("kbkit", appauthor=False)) / "models"


def _one_of(variables: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = variables.get(name) or choices[0]
    if value not in choices:
        raise ConfigError(f"{name}={value}: set it to {' or '.join(choices)}, or unset it")
    return value


def _positive(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST:  # sockets refuse what is much longer
        raise ConfigError(
            f"{name}={text}: not a number above 0 and at most {_LONGEST:,}; set it to seconds, "
            "or unset it"
        )
    return value
