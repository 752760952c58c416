"""Requests to a server, and checks of its answers."""

from contextlib import contextmanager

import httpx2
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def problem(response, status, error, *words):
    """Check that a response is a problem with these words, and return its detail."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    details = response.json()
    assert (details["status"], details["error"]) == (status, error)
    assert details["type"].startswith("urn:kbkit:problem:")
    for word in words:
        assert word in details["detail"]
    return details["detail"]


def pages(client, path, **params):
    """Yield the rows of each page of a list."""
    while True:
        page = client.get(path, params=params).json()
        yield page["data"]
        if page["next_cursor"] is None:
            return
        params["cursor"] = page["next_cursor"]


@contextmanager
def agent(url, *, token=None, mode="auto"):
    """Calls a method of an agent's client and waits for it."""
    headers = bearer(token) if token else {}
    with start_blocking_portal() as portal:
        http = httpx2.AsyncClient(headers=headers, timeout=20)
        client = Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode)
        with portal.wrap_async_context_manager(http), portal.wrap_async_context_manager(client):

            def run(method, *arguments):
                if method == "version":
                    return client.protocol_version
                if callable(method):
                    return portal.call(method, client)
                return portal.call(getattr(client, method), *arguments)

            yield run
