"""Routes derive responses and their documentation from functions."""

from typing import Annotated

import pytest
from fastapi import FastAPI, Query
from fastapi.testclient import TestClient
from pydantic import BaseModel

from kbkit.access import Scope
from kbkit.models import RatingTotal
from kbkit.server import responses as problems
from kbkit.server.access import WRITE
from kbkit.server.parameters import keyset_page
from kbkit.server.responses import IfMatch, Page, Paged
from kbkit.server.routing import Created, Routes

routes = Routes("/teas", "teas")


class Tea(BaseModel):
    name: str


@routes.get("", None)
def list_teas(first: Annotated[int, Query()] = 2) -> Paged[RatingTotal]:
    """List teas."""
    found = [RatingTotal(raters=number, average=1.0) for number in range(first)]
    return keyset_page(found, 2, lambda last: (last.raters,))


@routes.get("/all", None, model=Page[Tea])
async def list_all() -> list[dict[str, str]]:
    return [{"name": "green"}]


@routes.post("", WRITE)
def make_tea(body: Tea) -> Created[RatingTotal]:
    return Created(RatingTotal(raters=len(body.name), average=1.0), "/teas/1")


@routes.delete("/{name}", WRITE)
def drink(name: str, if_match: IfMatch) -> None:
    assert name
    assert if_match == "v1"


@routes.get("/{name}", None)
def find(name: str) -> Tea | None:
    return Tea(name=name) if name == "green" else None


@pytest.fixture(scope="module")
def app():
    app = FastAPI()
    problems.add_handlers(app)
    app.include_router(routes.router)
    return app


@pytest.fixture
def client(app):
    return TestClient(app)


def test_results_become_responses(client):
    page = client.get("/teas").json()
    assert [each["raters"] for each in page["data"]] == [0, 1]
    assert page["next_cursor"]
    assert client.get("/teas?first=1").json()["next_cursor"] is None
    assert client.get("/teas/all").json() == {"data": [{"name": "green"}], "next_cursor": None}
    created = client.post("/teas", json={"name": "oolong"})
    assert (created.status_code, created.headers["location"]) == (201, "/teas/1")
    assert created.json()["raters"] == 6
    assert client.get("/teas/green").json() == {"name": "green"}
    assert client.get("/teas/black").status_code == 204
    gone = client.delete("/teas/green", headers={"If-Match": '"v1"'})
    assert (gone.status_code, gone.content) == (204, b"")


def test_return_types_document_responses(app):
    paths = app.openapi()["paths"]
    get, post = paths["/teas"]["get"], paths["/teas"]["post"]
    assert get["description"] == "List teas."
    assert "security" not in get
    assert post["security"] == [{"token": [Scope.WRITE.value]}]
    assert {"201", "404", "412", "422"} <= set(post["responses"])
    assert "200" not in post["responses"]
    assert set(paths["/teas/{name}"]["get"]["responses"]) >= {"200", "204"}
    assert "200" not in paths["/teas/{name}"]["delete"]["responses"]
