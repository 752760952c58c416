"""Every route and tool of the running application is listed here with its scope and audience."""

import json
import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

import kbkit
from kbkit.access import Tokens
from kbkit.server import ServerSettings, running, serving
from tests.server.requests import agent, bearer, problem

ROUTES = """
read   some     POST   /api/knowledge/search
read   some     POST   /api/knowledge/ask
read   some     POST   /api/knowledge/context
write  kb       POST   /api/knowledge/documents
read   kb       GET    /api/knowledge/documents
read   id       GET    /api/knowledge/documents/{document}
write  kb       PUT    /api/knowledge/documents/{document}
write  kb       DELETE /api/knowledge/documents/{document}
read   kb       GET    /api/knowledge/bases/{name}/trash
write  kb       POST   /api/knowledge/bases/{name}/trash/undelete
read   some     GET    /api/knowledge/bases
admin  kb       POST   /api/knowledge/bases
read   kb       GET    /api/knowledge/bases/{name}
admin  kb       PATCH  /api/knowledge/bases/{name}
admin  kb       DELETE /api/knowledge/bases/{name}
read   kb       GET    /api/knowledge/bases/{name}/stats
read   some     GET    /api/knowledge/trash
admin  kb       POST   /api/knowledge/trash/{name}/undelete
admin  all      POST   /api/knowledge/compact
read   some     GET    /api/knowledge/runs
admin  all      POST   /api/knowledge/doctor
read   kb       GET    /api/knowledge/bases/{name}/spec
admin  kb       PUT    /api/knowledge/bases/{name}/spec
write  kb       POST   /api/knowledge/import/url
write  kb       POST   /api/knowledge/import/openapi
write  kb       POST   /api/knowledge/import/file
write  kb       POST   /api/knowledge/bases/{name}/ingest
write  kb       POST   /api/knowledge/bases/{name}/refresh
write  kb       POST   /api/knowledge/bases/{name}/improve
read   kb       GET    /api/knowledge/bases/{name}/sources
write  kb       POST   /api/knowledge/bases/{name}/sources
read   kb       GET    /api/knowledge/bases/{name}/sources/{source}
write  kb       PATCH  /api/knowledge/bases/{name}/sources/{source}
write  kb       DELETE /api/knowledge/bases/{name}/sources/{source}
read   id       GET    /api/knowledge/chunks/{chunk}
read   id       POST   /api/knowledge/chunks/{chunk}/similar
read   id       GET    /api/knowledge/chunks/{chunk}/related
write  id       POST   /api/knowledge/chunks/{chunk}/rate
read   kb       GET    /api/knowledge/bases/{name}/chunks
read   kb       GET    /api/knowledge/bases/{name}/ratings
write  kb       DELETE /api/knowledge/bases/{name}/ratings/{rating}
read   kb       GET    /api/knowledge/bases/{name}/targets/{target}/ratings
write  kb       POST   /api/knowledge/bases/{name}/targets/{target}/ratings
read   files    GET    /api/files
read   files    GET    /api/files/tree
read   files    GET    /api/files/prompt
read   files    GET    /api/files/revision
write  files    POST   /api/files/mkdir
write  files    POST   /api/files/move
write  files    POST   /api/files/sync
read   files    GET    /api/files/{path}
write  files    PUT    /api/files/{path}
write  files    POST   /api/files/{path}
write  files    PATCH  /api/files/{path}
write  files    DELETE /api/files/{path}
read   entries  GET    /api/entries
write  entries  POST   /api/entries
read   entries  GET    /api/entries/revision.json
write  entries  POST   /api/entries/sync
read   entries  POST   /api/entries/find
read   entries  POST   /api/entries/context
write  entries  POST   /api/entries/learn
read   entries  GET    /api/entries/learn/prompt
read   entries  GET    /api/entries/{slug}
write  entries  PUT    /api/entries/{slug}
write  entries  DELETE /api/entries/{slug}
write  entries  POST   /api/entries/{slug}/rate
write  entries  POST   /api/entries/{slug}/rename
read   entries  GET    /api/entries/{slug}/artifacts
read   entries  GET    /api/entries/{slug}/artifacts/{path}
read   files    GET    /api/trash/files
write  files    POST   /api/trash/files
read   entries  GET    /api/trash/entries
write  entries  POST   /api/trash/entries
read   kb       GET    /api/knowledge/bases/{name}/chunks/map
write  kb       POST   /api/knowledge/bases/{name}/chunks/encoder
read   kb       GET    /api/knowledge/bases/{name}/annotations
read   kb       GET    /api/knowledge/bases/{name}/annotated-chunks
write  kb       POST   /api/knowledge/bases/{name}/annotate
write  kb       POST   /api/knowledge/bases/{name}/expansions
read   kb       GET    /api/knowledge/bases/{name}/judgements
read   kb       POST   /api/knowledge/bases/{name}/pool
read   kb       POST   /api/knowledge/bases/{name}/evaluate
write  kb       POST   /api/knowledge/bases/{name}/tune
write  kb       POST   /api/knowledge/bases/{name}/exports
read   kb       GET    /api/knowledge/bases/{name}/exports/{archive}
read   any      GET    /api/caller
write  kb       DELETE /api/knowledge/bases/{name}/expansions
read   kb       GET    /api/knowledge/bases/{name}/revision
read   kb       POST   /api/knowledge/bases/{name}/chunk-ratings
read   kb       POST   /api/knowledge/bases/{name}/summaries
read   all      GET    /api/knowledge/graph
read   all      GET    /api/knowledge/graph/entities
write  all      POST   /api/knowledge/graph/entities
read   all      GET    /api/knowledge/graph/entities/{id}
write  all      PUT    /api/knowledge/graph/entities/{id}
write  all      DELETE /api/knowledge/graph/entities/{id}
read   all      GET    /api/knowledge/graph/entities/{id}/neighbors
read   all      GET    /api/knowledge/graph/relationships
write  all      POST   /api/knowledge/graph/relationships
write  all      DELETE /api/knowledge/graph/relationships
read   all      GET    /api/knowledge/graph/relationships/between
write  all      POST   /api/knowledge/graph/merge
write  all      POST   /api/knowledge/graph/refuse
read   all      GET    /api/knowledge/graph/edits
write  all      POST   /api/knowledge/graph/undo
read   all      GET    /api/knowledge/graph/neighbors
read   all      GET    /api/knowledge/graph/passages
read   all      GET    /api/knowledge/graph/path
read   all      GET    /api/knowledge/graph/gaps
read   all      GET    /api/knowledge/graph/suggestions
read   all      POST   /api/knowledge/graph/layout
read   some     GET    /api/knowledge/subjects
read   some     GET    /api/knowledge/about
read   some     GET    /api/jobs
read   id       GET    /api/jobs/{job_id}
write  id       DELETE /api/jobs/{job_id}
read   id       GET    /api/jobs/{job_id}/events
open   -        GET    /health
open   -        GET    /ready
read   any      GET    /metrics
open   -        GET    /.well-known/oauth-protected-resource
open   -        GET    /.well-known/oauth-protected-resource/mcp
"""
QUERIES: dict[tuple[str, str], dict[str, Any]] = {
    ("GET", "neighbors"): {"target": "c"},
    ("GET", "passages"): {"target": "c"},
    ("GET", "path"): {"source": "a", "target": "c"},
    ("GET", "relationships/between"): {"source": "a", "name": "b", "target": "c"},
    ("DELETE", "relationships"): {"source": "a", "name": "b", "target": "c"},
}
"""Required query parameters of routes of the graph."""
UNDOCUMENTED = """
read   any      GET    /site/{name}
read   kb       GET    /site/{name}/{path:path}
open   -        GET    /
open   -        GET    /docs
open   -        GET    /openapi.json
"""
"""Routes that are not in the OpenAPI document."""
TOOLS = """
read   kb    search_knowledge_base
read   some  list_knowledge_bases
read   kb    get_document
read   kb    get_context
write  kb    rate_chunk
admin  kb    create_kb_collection
write  kb    add_kb_documents
read   kb    search_kb
read   kb    describe_kb_collection
admin  kb    drop_kb_collection
write  kb    delete_kb_documents
read   all   kb_list
read   all   kb_read
read   all   kb_tree
write  all   kb_write
write  all   kb_append
write  all   kb_mkdir
write  all   kb_delete
write  all   memory
read   all   find_entries
read   all   get_entry
write  all   create_entry
write  all   rate_entry
write  all   learn_entry
read   all   graph_entities
read   all   graph_neighbors
read   all   about
write  all   graph_relate
"""
ARGUMENTS: dict[str, dict[str, Any]] = {
    "search_knowledge_base": {"query": "tea"},
    "get_context": {"query": "tea"},
    "search_kb": {"query": "tea"},
    "get_document": {"document_name": "x"},
    "rate_chunk": {"chunk_id": "x", "score": 1},
    "add_kb_documents": {"documents": "x"},
    "delete_kb_documents": {"ids": ["x"]},
}
"""Required arguments of tools beside the knowledge base."""
CLIENT = httpx.Client(timeout=30)
"""Shared, since a client loads certificates for longer than a request takes."""
SCOPES = ("read", "write", "admin")
SECRET = "quicksilver"
"""A word that only those with a permission may read."""


@dataclass(frozen=True)
class Permission:
    """The scope that a route needs, and its audience (`kb`: tokens for the one it names)."""

    scope: str
    audience: str
    method: str
    path: str


def table(text: str) -> dict[tuple[str, str], Permission]:
    rows = [Permission(*line.split()) for line in text.strip().splitlines()]
    return {(row.method, row.path): row for row in rows}


KNOWN = table(ROUTES)
ALL = KNOWN | table(UNDOCUMENTED)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A workspace with secrets, its server, and tokens of each kind."""
    with kbkit.open(tmp_path_factory.mktemp("permissions") / "kb") as workspace:
        workspace.create("mine").add("Tea", "Steep tea for two minutes.")
        secret = workspace.create("secret", description=SECRET)
        document = secret.add(f"The {SECRET}", f"# The {SECRET}\n\nNobody may read of {SECRET}.\n")
        chunk = next(iter(secret.chunks))
        rating = secret.rate(chunk.id, 4, query=SECRET)
        workspace.create("deleted", description=SECRET)
        workspace.delete("deleted")
        workspace.files.write("hidden.md", f"# {SECRET}\n")
        workspace.entries.create(f"Make {SECRET}", slug="hidden")
        tokens = Tokens(workspace)
        created = {scope: tokens.create(scope, scope=scope).token for scope in SCOPES}
        created["other"] = tokens.create("other", scope="admin", kbs=["mine"]).token
        names = {"name": "secret", "document": document.id, "chunk": chunk.id}
        names |= {"rating": str(rating.id), "target": document.id}
        names |= dict.fromkeys(("job_id", "archive"), "0" * 32)
        names |= dict.fromkeys(("path", "path:path"), "hidden.md")
        names |= dict.fromkeys(("slug", "source", "id"), "hidden")
        settings = ServerSettings(port=0, rate=0, tools=("all",), allow_write=True)
        with running(workspace, settings) as url:
            served = Served(workspace, url, created, names)
            before = served.state()
            yield served
            assert served.state() == before  # refused requests changed nothing


@dataclass(frozen=True)
class Served:
    workspace: kbkit.Workspace
    url: str
    tokens: dict[str, str]
    names: dict[str, str]

    def ask(self, route: Permission, token: str | None, names: dict[str, str]) -> Any:
        """Send a complete request."""
        place = route.path
        for name, value in names.items():
            place = place.replace("{" + name + "}", value)
        assert "{" not in place
        kbs = "kbs" if route.path.endswith(("/subjects", "/about")) else "kb"
        about = {kbs: names["name"]}
        if route.path.rpartition("/")[2] in ("search", "context", "about"):
            about["query"] = "tea"
        sent: dict[str, Any] = {}
        if route.method in ("POST", "PUT", "PATCH"):
            sent = {"json": self.body(route, names)}
            if route.path == "/api/files/{path}" and route.method != "PATCH":
                sent = {"content": b"Text."}
            if route.path == "/api/knowledge/import/file":
                sent = {"data": {"kb": names["name"]}, "files": {"files": ("a.md", b"# A")}}
        query = about if route.audience in ("kb", "id", "some") else {}
        if "{name}" in route.path or (route.method == "POST" and "{chunk}" not in route.path):
            query = {}  # its knowledge base is in its path or its body
        if "/graph/" in route.path:
            query = QUERIES.get((route.method, route.path.rpartition("graph/")[2]), {})
        elif route.path.endswith("/annotations"):
            query["target"] = names["chunk"]
        elif re.search(r"^/api/jobs|^/api/knowledge/(bases|trash)$", route.path):
            query = {}
        headers = bearer(token) if token else {}
        return CLIENT.request(route.method, self.url + place, params=query, headers=headers, **sent)

    @staticmethod
    def body(route: Permission, names: dict[str, str]) -> dict[str, Any]:
        name = names["name"]
        bodies: dict[str, dict[str, Any]] = {
            "POST /api/knowledge/search": {"query": "tea", "kb": name},
            "POST /api/knowledge/ask": {"query": "tea", "kb": name},
            "POST /api/knowledge/context": {"query": "tea", "kb": name},
            "POST /api/knowledge/documents": {"kb": name, "title": "New", "content": "New."},
            "PUT /api/knowledge/documents/{document}": {"content": "Changed."},
            "POST /api/knowledge/bases/{name}/trash/undelete": {"document": names["document"]},
            "POST /api/knowledge/bases": {"name": name},
            "PATCH /api/knowledge/bases/{name}": {"description": "Changed"},
            "POST /api/knowledge/trash/{name}/undelete": {},
            "POST /api/knowledge/chunks/{chunk}/rate": {"score": 1},
            "POST /api/knowledge/bases/{name}/targets/{target}/ratings": {"score": 1},
            "PUT /api/knowledge/bases/{name}/spec": {"spec": {}},
            "POST /api/knowledge/bases/{name}/exports": {"build": False},
            "POST /api/knowledge/import/url": {"kb": name, "url": "http://tea:port/"},
            "POST /api/knowledge/import/openapi": {"kb": name, "description": {}},
            "POST /api/knowledge/bases/{name}/sources": {
                "sources": [{"type": "page", "url": "http://127.0.0.1:9/"}]
            },
            "PATCH /api/knowledge/bases/{name}/sources/{source}": {"enabled": True},
            "POST /api/knowledge/bases/{name}/pool": {"query": "tea"},
            "POST /api/files/mkdir": {"path": names["path"] + "/new"},
            "POST /api/files/move": {"source": names["path"], "target": "else.md"},
            "PATCH /api/files/{path}": {"op": "insert", "line": 0, "text": "Text."},
            "POST /api/entries": {"title": "New", "slug": names["slug"]},
            "POST /api/entries/find": {"prompt": "make"},
            "POST /api/entries/context": {"prompt": "make"},
            "POST /api/entries/learn": {"files": {"x.txt": "x"}, "task_id": "1"},
            "POST /api/entries/skills": {"files": {"x.txt": "x"}},
            "PUT /api/entries/{slug}": {"title": "Changed"},
            "POST /api/entries/{slug}/rate": {"score": 1},
            "POST /api/entries/{slug}/rename": {"to": "else"},
            "POST /api/trash/files": {"path": names["path"]},
            "POST /api/trash/entries": {"path": names["slug"]},
            "POST /api/knowledge/bases/{name}/chunk-ratings": {"ids": [names["chunk"]]},
            "POST /api/knowledge/bases/{name}/summaries": {"ids": [names["chunk"]]},
            "POST /api/knowledge/graph/entities": {"name": " "},
            "PUT /api/knowledge/graph/entities/{id}": {"description": "Changed."},
            "POST /api/knowledge/graph/relationships": {"source": "a", "name": "b", "target": "c"},
            "POST /api/knowledge/graph/merge": {"keep": "a", "other": "b"},
            "POST /api/knowledge/graph/refuse": {"keep": "a", "other": "b"},
        }
        return bodies.get(f"{route.method} {route.path}", {})

    def state(self) -> str:
        """All that a request could change."""
        secret = self.workspace["secret"]
        documents = [document.to_dict() for document in secret.documents]
        ratings = [rating.to_dict() for rating in secret.ratings]
        info = secret.info().to_dict()
        file = self.workspace.files.read("hidden.md")
        entry = self.workspace.entries.read("hidden").to_dict()
        return json.dumps([documents, ratings, info, file, entry], sort_keys=True)


def flat(routes):
    for route in routes:
        inner = getattr(route, "original_router", None)
        yield from [route] if inner is None else flat(inner.routes)


def test_every_route_is_listed_with_its_scope(served):
    app = serving._app(served.workspace, ServerSettings(tools=("all",), allow_write=True))
    document = app.openapi()
    documented = {
        (method.upper(), path): operation.get("security", [{"token": ["open"]}])
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert {key: [{"token": [row.scope]}] for key, row in KNOWN.items()} == documented
    routes = {
        (method, route.path.replace(":path}", "}"))
        for route in flat(app.routes)
        for method in route.methods or ["MCP"]
        if method != "HEAD"
    }
    others = {(method, path.replace(":path}", "}")) for method, path in table(UNDOCUMENTED)}
    assert routes - KNOWN.keys() == others | {("MCP", "/mcp"), ("MCP", "/mcp/")}


@pytest.mark.parametrize("route", ALL.values(), ids=lambda route: f"{route.method} {route.path}")
def test_routes_check_scope_and_audience(served, route):
    nowhere = dict.fromkeys(served.names, "nowhere")
    if route.scope == "open":
        assert served.ask(route, None, nowhere).status_code == 200
        return
    answer = served.ask(route, None, served.names)
    problem(answer, 401, "TokenError")
    method = "Basic " if route.path.startswith("/site/") else "Bearer "  # browsers know Basic
    assert answer.headers["www-authenticate"].startswith(method)
    assert served.ask(route, "kbkit_000000000000_" + "x" * 43, served.names).status_code == 401
    enough = SCOPES.index(route.scope)
    for scope in SCOPES[:enough]:
        answer = served.ask(route, served.tokens[scope], served.names)
        problem(answer, 403, "ForbiddenError", f"needs the scope {route.scope}")
    answer = served.ask(route, served.tokens["other"], served.names)
    allowed = {"some": (200, 403), "any": (200, 308), "id": (403, 404)}.get(route.audience, (403,))
    assert answer.status_code in allowed, answer.text
    if route.audience != "any":
        assert SECRET not in answer.text
    for scope in SCOPES[enough:]:  # of absent targets, so that nothing changes
        answer = served.ask(route, served.tokens[scope], nowhere)
        assert answer.status_code not in {401, 403, 405, 500}, answer.text
        assert "there is nothing at this address" not in answer.text


@pytest.mark.parametrize(
    "path", ["documents/{document}", "chunks/{chunk}", "chunks/{chunk}/related"]
)
def test_ids_without_a_knowledge_base_are_those_of_visible_ones(served, path):
    url = f"{served.url}/api/knowledge/{path.format(**served.names)}"
    assert CLIENT.get(url, headers=bearer(served.tokens["read"])).status_code == 200
    answer = CLIENT.get(url, headers=bearer(served.tokens["other"]))
    problem(answer, 404, "NotFoundError")
    assert SECRET not in answer.text


def refusal(run, name, arguments):
    """Return the message of a tool."""
    answer = run("call_tool", name, arguments)
    assert answer.is_error
    return answer.content[0].text


def test_tools_check_scope_and_audience(served):
    lines = map(str.split, TOOLS.strip().splitlines())
    known = {name: (scope, audience) for scope, audience, name in lines}
    for kind, token in served.tokens.items():
        with agent(served.url, token=token) as run:
            listed = {tool.name for tool in run("list_tools").tools}
            if kind == "admin":
                assert listed == known.keys()
            for name, (scope, audience) in known.items():
                other = kind == "other"
                allowed = audience != "all" if other else SCOPES.index(kind) >= SCOPES.index(scope)
                assert (name in listed) == allowed, (kind, name)
                message = refusal(run, name, {"no_such_argument": 1})
                refused = "this needs the" in message
                assert refused == (not allowed), (kind, name, message)
                arguments = ARGUMENTS.get(name, {})
                if other and audience == "kb":
                    place = "collection_name" if "kb_" in name or name == "search_kb" else "kb_name"
                    message = refusal(run, name, arguments | {place: "secret"})
                    assert "is not for 'secret'" in message, message
                if other and audience == "some":
                    assert SECRET not in str(run("call_tool", name, arguments))


def test_resources_and_prompts_are_limited_to_the_token(served):
    with agent(served.url, token=served.tokens["other"]) as run:
        shown = str(run("list_resources")) + str(run("list_prompts"))
        shown += str(run("get_prompt", run("list_prompts").prompts[0].name))
        assert "mine" in shown
        assert "secret" not in shown
        assert SECRET not in shown
        with pytest.raises(Exception, match="is not for 'secret', but for mine"):
            run("read_resource", f"kbkit://kb/secret/{served.names['document']}")
