"""A workspace over HTTP: routes that translate requests and answers, and decide nothing."""

from kbkit.rest.app import application
from kbkit.rest.settings import ServerSettings

__all__ = ["ServerSettings", "application"]
