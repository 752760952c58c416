"""A workspace that a server holds, used like one in a folder; needs httpx and pydantic only."""

from kbkit.client.workspace import AsyncWorkspace, RemoteWorkspace, connect

__all__ = ["AsyncWorkspace", "RemoteWorkspace", "connect"]
