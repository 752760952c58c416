"""The gate: who may knock, with what, how long and how often. A real server on loopback answers."""

import base64
import hashlib
import re
import socket
from contextlib import suppress

import httpx
import pytest

from kbkit.access import Tokens
from kbkit.errors import LimitError
from kbkit.server import mcp
from kbkit.server.middleware import Rates


@pytest.fixture(scope="module")
def client(serve):
    with serve(max_body=5000, body_seconds=0.4, allow_origins=("https://app.example",)) as made:
        yield made


def told(response, status, error):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    details = response.json()
    assert (details["status"], details["error"]) == (status, error)
    assert details["type"].startswith("urn:kbkit:problem:")
    return details["detail"]


def raw(client, *parts):
    """What a server answers to bytes; ``""`` where it closes the connection."""
    with socket.create_connection((client.base_url.host, client.base_url.port), 10) as peer:
        answer = b""
        with suppress(ConnectionError):  # the server may have closed it in the middle
            for part in parts:
                peer.sendall(part)
        with suppress(ConnectionError):
            while part := peer.recv(65536):
                answer += part
                if b"\r\n\r\n" in answer:
                    break
        return answer.decode("latin-1")


def test_every_answer_says_how_it_may_be_used(client):
    for path in ("/health", "/nowhere", "/api/jobs", "/docs"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers


@pytest.mark.parametrize("path", ["/health", "/api/jobs", "/docs", "/nowhere", "/site/drinks/"])
def test_a_page_of_somebody_else_gets_nothing(client, path):
    said = told(client.get(path, headers={"Host": "evil.example"}), 403, "ForbiddenError")
    assert "'evil.example' is no name of this server" in said
    for origin in ("https://evil.example", "null", f"{client.base_url}.evil.example"):
        said = told(client.get(path, headers={"Origin": origin}), 403, "ForbiddenError")
        assert "may not use this server" in said


def test_a_page_of_its_own_and_one_that_is_named_may_ask(client):
    own = f"http://{client.base_url.host}:{client.base_url.port}"
    answer = client.get("/api/jobs", headers={"Origin": own})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers
    answer = client.get("/api/jobs", headers={"Origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    preflight = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,if-match",
    }
    answer = client.options("/api/jobs", headers=preflight)
    assert answer.status_code == 200
    assert "PUT" in answer.headers["access-control-allow-methods"]
    assert (
        "access-control-allow-origin"
        not in client.options(
            "/api/jobs", headers={**preflight, "Origin": "https://evil.example"}
        ).headers
    )


def test_two_hosts_are_none(client):
    answer = raw(client, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 400", "HTTP/1.1 403"))


@pytest.mark.parametrize(
    "query", ["token=x", "access_token=x", "a=1&API_KEY=x", f"q=kbkit_{'0' * 12}_{'a' * 43}"]
)
def test_a_token_in_an_address_is_refused_and_told_to_nobody(client, query, caplog):
    with caplog.at_level("DEBUG", "kbkit"):
        said = told(client.get(f"/api/jobs?{query}"), 400, "ArgumentError")
    assert "does not belong into an address" in said
    assert query not in said
    assert query not in caplog.text


def test_a_body_that_is_too_long_is_refused_before_or_while_it_comes_in(client):
    said = told(client.post("/api/jobs", content=b"x" * 5001), 413, "LimitError")
    assert "longer than 0.005 MB" in said

    def parts():
        for _ in range(10):
            yield b"x" * 1000

    answer = client.post("/__echo", content=parts())
    assert answer.status_code in (404, 413)  # nobody reads the body of what is not there


def test_who_asks_too_often_is_told_when_to_go_on(serve):
    with serve(rate=0.05, burst=3) as client:
        for _ in range(3):
            assert client.get("/health").status_code == 200
        answer = client.get("/health")
        said = told(answer, 429, "LimitError")
        assert re.fullmatch(r"more than 0.05 requests a second; ask again in (1\d|20) s", said)
        assert int(answer.headers["retry-after"]) in range(10, 21)


def test_rates_forget_callers_and_fill_up_again():
    now = 5.0
    rates = Rates(0.5, 1, lambda: now)
    rates.take("a")
    with pytest.raises(LimitError, match="ask again in 2 s"):
        rates.take("a")
    rates.take("b")
    now += 2
    rates.take("a")
    Rates(0, 1).take("a")


@pytest.mark.parametrize(
    "head",
    [b"GET /api/jobs?cursor=a%0d%0aX-Evil:%201 HTTP/1.1", b"GET /site/a%0d%0aX-Evil:%201 HTTP/1.1"],
)
def test_no_header_is_smuggled_into_an_answer(client, head):
    host = f"{client.base_url.host}:{client.base_url.port}".encode()
    answer = raw(client, head + b"\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    headers = answer.partition("\r\n\r\n")[0].lower()
    assert headers.startswith("http/1.1 ")
    assert "\nx-evil" not in headers


def test_tokens_are_wanted_as_soon_as_there_is_one_and_ever_after(serve, workspace):
    tokens = Tokens(workspace)
    with serve() as client:
        assert client.get("/api/jobs").status_code == 200, "alone on this machine, none is needed"
        token, _ = tokens.create("ann", scope="read")
        answer = client.get("/api/jobs")
        assert "a token is needed" in told(answer, 401, "TokenError")
        url = str(client.base_url)
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="kbkit", resource_metadata="{url}/.well-known/oauth-protected-resource"'
        )
        for of in ("", "/mcp"):  # RFC 9728: that which it was made the address of
            metadata = client.get(f"/.well-known/oauth-protected-resource{of}")
            assert metadata.json() == {
                "resource": f"{url}{of}",
                "resource_name": "kbkit",
                "scopes_supported": ["read", "write", "admin"],
                "bearer_methods_supported": ["header"],
            }
        for path in ("/", "/health", "/ready", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200
        for path in ("/metrics", "/nowhere", "/site/drinks/", "/mcp"):
            assert client.get(path).status_code == 401, path
        mine = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/jobs", headers=mine).status_code == 200
        assert client.get("/metrics", headers=mine).status_code == 200
        for wrong in (token[:-1] + "x", token.upper(), "x", "kbkit_x", token[:19]):
            answer = client.get("/api/jobs", headers={"Authorization": f"Bearer {wrong}"})
            assert "unknown or was revoked" in told(answer, 401, "TokenError")
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        answer = client.get("/api/jobs", headers=[("Authorization", f"Bearer {token}")] * 2)
        assert answer.status_code == 401
        assert client.get("/api/jobs", headers={"Authorization": "Basic eDp5"}).status_code == 401
        assert "needs the scope write" in told(
            client.delete("/api/jobs/x", headers=mine), 403, "ForbiddenError"
        )
        tokens.revoke("ann")
        assert client.get("/api/jobs", headers=mine).status_code == 401, "at once"
        assert client.get("/api/jobs").status_code == 401, "the last one opens no door"


def test_a_site_is_shown_to_a_browser_that_asks_for_a_password(serve, workspace):
    (workspace["food"].export(build=False).folder / "site").mkdir(exist_ok=True)
    folder = workspace["food"].export(build=False).folder / "site"
    (folder / "index.html").write_text("<h1>Food</h1>")
    (folder.parent / "secret.html").write_text("secret")
    tokens = Tokens(workspace)
    token, _ = tokens.create("bob", kbs=["food"])
    try:
        with serve() as client:
            answer = client.get("/site/food/")
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Basic ")
            answer = client.get("/site/food/", auth=("", token))
            assert answer.text == "<h1>Food</h1>"
            policy = answer.headers["content-security-policy"]
            assert f"connect-src {client.base_url}/site/food/ " in policy
            assert client.get("/api/jobs", auth=("", token)).status_code == 401, "only there"
            for path in (
                "../secret.html",
                "..%2fsecret.html",
                "%2e%2e/secret.html",
                "x\0y",
                "a" * 5000,
                "/etc/passwd",
            ):
                target = httpx.URL(f"{client.base_url}").copy_with(
                    raw_path=f"/site/food/{path}".replace("\0", "%00").encode()
                )
                answer = client.get(target, auth=("", token), follow_redirects=True)
                assert answer.status_code in (400, 401, 403, 404), path
                assert answer.text != "secret"
            answer = client.get("/site/drinks/", auth=("", token))
            assert "is not for 'drinks', but for food" in told(answer, 403, "ForbiddenError")
    finally:
        tokens.revoke("bob")


def test_figures_name_routes_and_no_addresses(serve):
    with serve() as client:
        client.get("/api/jobs/some-secret-id")
        client.get("/wp-login.php")
        text = client.get("/metrics").text
        assert (
            'kbkit_requests_total{method="GET",route="/api/jobs/{job_id}",status="404"} 1.0' in text
        )
        assert 'route="other",status="404"} 1.0' in text
        assert 'kbkit_jobs{state="running"} 0.0' in text
        assert "secret" not in text
        assert "wp-login" not in text


def test_the_page_of_routes_loads_nothing_but_its_own_style(client):
    page = client.get("/docs")
    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert not re.findall(r'(?:src|href)="(?!#|/openapi\.json")', page.text)
    document = client.get("/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page.text
    names = set(re.findall(r'<a href="#([^"]+)"', page.text))
    assert names
    assert all(f'id="{name}"' in page.text for name in names)


def test_every_route_says_its_scope_and_how_it_refuses(client):
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    public = {
        "/health",
        "/ready",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    }
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            scopes = [scope for each in operation.get("security", ()) for scope in each["token"]]
            assert (scopes == []) == (path in public), f"{method} {path}"
            assert {"400", "401", "403", "408", "413", "429"} <= set(operation["responses"])
            if method != "get" and scopes == ["read"]:
                # asked with a body, and changes nothing
                assert method == "post", f"{method} {path}"
            assert operation["description"].endswith("."), f"{method} {path}"


def test_headers_that_come_to_no_end_are_not_kept(client, monkeypatch):
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    answer = raw(client, head, *[b"x" * 10_000] * 12)  # and no more: who kept it would wait
    assert answer == "" or answer.startswith("HTTP/1.1 431 ")
    assert client.get("/health").status_code == 200
    monkeypatch.setattr(mcp, "HEADER_SECONDS", 0.2)
    assert raw(client, head) == "", "closed, and not waited for"
    # what is served quickly is served on the same connection, later too
    for _ in range(3):
        assert client.get("/health").status_code == 200
