"""Serve a workspace: REST, MCP and sites, at one address."""

from kbkit.extras import extra

with extra("server", "fastapi", "Serving a workspace"):
    import fastapi  # noqa: F401
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401

from kbkit.server.serving import running, serve
from kbkit.server.settings import ServerSettings

__all__ = ["ServerSettings", "running", "serve"]
