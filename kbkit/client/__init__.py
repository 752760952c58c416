"""The client of a kbkit server; needs only httpx and pydantic."""

from kbkit.client.workspace import AsyncWorkspace, RemoteWorkspace, connect

__all__ = ["AsyncWorkspace", "RemoteWorkspace", "connect"]
