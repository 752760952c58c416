"""A workspace over HTTP: routes translate requests and responses."""

from kbkit.rest.app import application
from kbkit.rest.settings import ServerSettings

__all__ = ["ServerSettings", "application"]
