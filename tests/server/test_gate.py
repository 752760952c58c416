"""Headers, hosts, origins, tokens, limits and rates of a server on loopback."""

import base64
import hashlib
import re
import socket
from contextlib import suppress

import pytest

from kbkit.errors import LimitError
from kbkit.server import mcp
from kbkit.server.middleware import Rates
from tests.server.requests import bearer, problem


@pytest.fixture(scope="module")
def client(serve):
    with serve(max_body=5000, body_seconds=0.4, allow_origins=("https://app.example",)) as client:
        yield client


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


def test_security_headers_of_every_answer(client):
    for path in ("/health", "/nowhere", "/api/jobs", "/docs"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers


def test_own_and_allowed_origins_are_accepted(client):
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
    answer = client.options("/api/jobs", headers={**preflight, "Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_two_host_headers_are_refused(client):
    answer = raw(client, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 400", "HTTP/1.1 403"))


@pytest.mark.parametrize(
    "query", ["token=x", "access_token=x", "a=1&API_KEY=x", f"q=kbkit_{'0' * 12}_{'a' * 43}"]
)
def test_token_in_an_address_is_refused_and_not_logged(client, query, caplog):
    with caplog.at_level("DEBUG", "kbkit"):
        detail = problem(client.get(f"/api/jobs?{query}"), 400, "ArgumentError")
    assert "does not belong into an address" in detail
    assert query not in detail
    assert query not in caplog.text


def test_rate_limit_names_the_time_to_wait(serve):
    with serve(rate=0.05, burst=3) as client:
        for _ in range(3):
            assert client.get("/health").status_code == 200
        answer = client.get("/health")
        detail = problem(answer, 429, "LimitError")
        assert re.fullmatch(r"more than 0.05 requests a second; ask again in (1\d|20) s", detail)
        assert int(answer.headers["retry-after"]) in range(10, 21)


def test_rates_are_kept_by_caller_and_fill_up_again():
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
def test_address_cannot_inject_a_header(client, head):
    host = f"{client.base_url.host}:{client.base_url.port}".encode()
    answer = raw(client, head + b"\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    headers = answer.partition("\r\n\r\n")[0].lower()
    assert headers.startswith("http/1.1 ")
    assert "\nx-evil" not in headers


def test_tokens_are_required_once_one_was_created(serve, tokens):
    with serve() as client:
        assert client.get("/api/jobs").status_code == 200, "alone on this machine, none is needed"
        token, _ = tokens.create("ann", scope="read")
        answer = client.get("/api/jobs")
        problem(answer, 401, "TokenError", "a token is needed")
        url = str(client.base_url)
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="kbkit", resource_metadata="{url}/.well-known/oauth-protected-resource"'
        )
        for of in ("", "/mcp"):  # RFC 9728
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
        mine = bearer(token)
        assert client.get("/api/jobs", headers=mine).status_code == 200
        assert client.get("/metrics", headers=mine).status_code == 200
        for wrong in (token[:-1] + "x", token.upper(), "x", "kbkit_x", token[:19]):
            answer = client.get("/api/jobs", headers=bearer(wrong))
            problem(answer, 401, "TokenError", "unknown or was revoked")
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        for headers in ([*mine.items()] * 2, {"Authorization": "Basic eDp5"}):
            assert client.get("/api/jobs", headers=headers).status_code == 401
        answer = client.delete("/api/jobs/x", headers=mine)
        problem(answer, 403, "ForbiddenError", "needs the scope write")
        tokens.revoke("ann")
        assert client.get("/api/jobs", headers=mine).status_code == 401, "at once"
        assert client.get("/api/jobs").status_code == 401, (
            "revoking the last token does not open the server"
        )


def test_site_takes_a_token_as_a_password(serve, workspace, tokens):
    folder = workspace["food"].export(build=False).folder / "site"
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text("<h1>Food</h1>")
    (folder.parent / "secret.html").write_text("secret")
    token, _ = tokens.create("bob", kbs=["food"])
    auth = ("", token)
    with serve() as client:
        answer = client.get("/site/food/")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic ")
        answer = client.get("/site/food/", auth=auth)
        assert answer.text == "<h1>Food</h1>"
        policy = answer.headers["content-security-policy"]
        assert f"connect-src {client.base_url}/site/food/ " in policy
        assert client.get("/api/jobs", auth=auth).status_code == 401, "only sites take a password"
        outside = ("../secret.html", "..%2fsecret.html", "%2e%2e/secret.html", "/etc/passwd")
        for path in (*outside, "x%00y", "a" * 5000):
            target = client.base_url.copy_with(raw_path=f"/site/food/{path}".encode())
            answer = client.get(target, auth=auth, follow_redirects=True)
            assert answer.status_code in (400, 401, 403, 404), path
            assert answer.text != "secret"
        answer = client.get("/site/drinks/", auth=auth)
        problem(answer, 403, "ForbiddenError", "is not for 'drinks', but for food")


def test_metrics_name_routes_and_no_addresses(serve):
    with serve() as client:
        client.get("/api/jobs/some-secret-id")
        client.get("/wp-login.php")
        text = client.get("/metrics").text
        requests = 'kbkit_requests_total{method="GET",route="/api/jobs/{job_id}",status="404"} 1.0'
        assert requests in text
        assert 'route="other",status="404"} 1.0' in text
        assert 'kbkit_jobs{state="running"} 0.0' in text
        assert "secret" not in text
        assert "wp-login" not in text


def test_docs_page_loads_only_its_own_style(client):
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


def test_every_route_documents_its_errors(client):
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            scopes = [scope for each in operation.get("security", ()) for scope in each["token"]]
            assert {"400", "401", "403", "408", "413", "429"} <= set(operation["responses"])
            if scopes == ["read"]:
                assert method in ("get", "post"), f"{method} {path}"
            assert operation["description"].endswith("."), f"{method} {path}"


def test_endless_headers_close_the_connection(client, monkeypatch):
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    answer = raw(client, head, *[b"x" * 10_000] * 12)
    assert answer == "" or answer.startswith("HTTP/1.1 431 ")
    assert client.get("/health").status_code == 200
    monkeypatch.setattr(mcp, "HEADER_SECONDS", 0.2)
    assert raw(client, head) == ""
    for _ in range(3):  # the connection stays usable
        assert client.get("/health").status_code == 200
