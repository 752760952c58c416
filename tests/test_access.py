"""Tokens and the access that they give."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.access import TOKEN, Tokens
from kbkit.errors import ConfigError, ConflictError, ForbiddenError, NotFoundError, TokenError
from kbkit.models.server import ALL, Caller, Scope
from kbkit.stores.catalog.workspace_schema import tokens as table
from kbkit.workspace import stores_of


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("tokens") / "kb") as opened:
        opened.create("drinks")
        yield opened


@pytest.fixture
def tokens(workspace):
    tokens = Tokens(workspace)
    yield tokens
    for info in tokens.list():
        tokens.revoke(info.id)


def test_token_is_shown_once_and_stored_as_a_digest(workspace, tokens):
    token, info = tokens.create("ann", scope="write", kbs=["drinks", "files"])
    assert TOKEN.fullmatch(token)
    (kept,) = tokens.list()
    assert kept == info
    assert (kept.name, kept.scope, kept.kbs) == ("ann", "write", ("drinks", "files"))
    secret = token.rpartition(f"{info.id}_")[2]
    files = [path for path in workspace.path.iterdir() if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    assert "digest" not in kept.to_dict()
    caller = tokens.check(token)
    assert caller == Caller("ann", frozenset({Scope.READ, Scope.WRITE}), ("drinks", "files"))
    assert tokens.list()[0].used_at is not None


def test_invalid_tokens_are_refused(tokens):
    token, info = tokens.create("ann")
    other, _ = tokens.create("bob")
    mixed = f"kbkit_{info.id}_{other[-43:]}"
    for wrong in ("", "x", token[:-1], token + "a", mixed, "\udcff", "kbkit_" + "0" * 56):
        with pytest.raises(TokenError, match="unknown or was revoked"):
            tokens.check(wrong)
    assert tokens.check(token).name == "ann"


def test_revocation_by_another_process_holds_at_once(workspace, tokens):
    token, _ = tokens.create("ann")
    assert tokens.check(token).name == "ann"
    with kbkit.open(workspace.path) as other:
        Tokens(other).revoke("ann")
    with pytest.raises(TokenError):
        tokens.check(token)


def test_expired_token_is_refused(workspace, tokens):
    token, info = tokens.create("ann", days=1)
    assert info.expires_at - info.created_at == timedelta(days=1)
    assert tokens.check(token)
    with stores_of(workspace).database.write() as transaction:
        past = datetime.now(UTC) - timedelta(seconds=1)
        transaction.execute(sa.update(table).values(expires_at=past))
    with pytest.raises(TokenError, match="the token 'ann' has expired"):
        tokens.check(token)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"name": ""}, ConfigError, "a token's name has"),
        ({"name": "a\nb"}, ConfigError, "a token's name has"),
        ({"name": "a", "scope": "root"}, ConfigError, "choose from read, write, admin"),
        ({"name": "a", "days": 0}, ConfigError, "give 1 to 3,650"),
        ({"name": "a", "kbs": ["foo"]}, NotFoundError, "there are drinks, entries, files"),
        ({"name": "ann"}, ConflictError, "a token named 'ann' exists"),
    ],
)
def test_invalid_token_options_are_refused(tokens, options, error, message):
    tokens.create("ann")
    with pytest.raises(error, match=message):
        tokens.create(**options)
    with pytest.raises(NotFoundError, match="no token 'x'; there are ann"):
        tokens.revoke("x")


def test_access_stays_closed_after_the_last_revocation(workspace, tokens):
    access = Tokens(workspace, open_to_all=True)
    assert access.caller(None) == ALL
    tokens.create("ann")
    with pytest.raises(TokenError, match="a token is needed"):
        access.caller(None)
    tokens.revoke("ann")
    with pytest.raises(TokenError, match="a token is needed"):
        access.caller(None)
    with pytest.raises(TokenError):
        Tokens(workspace).caller(None)


def test_caller_is_limited_to_scope_and_knowledge_bases():
    caller = Caller("ann", Scope.WRITE.implied, ("drinks",))
    caller.require(Scope.READ)
    caller.require(Scope.WRITE)
    with pytest.raises(ForbiddenError, match="needs the scope admin; the token 'ann' has read, w"):
        caller.require(Scope.ADMIN)
    caller.require_kb("drinks")
    for refused in (lambda: caller.require_kb("food"), lambda: caller.restrict(["drinks", "food"])):
        with pytest.raises(ForbiddenError, match="is not for 'food', but for drinks"):
            refused()
    with pytest.raises(ForbiddenError, match="needs the whole workspace"):
        caller.require_all_kbs()
    assert caller.restrict(None) == ["drinks"]
    assert caller.visible(["drinks", "food"]) == ["drinks"]
    assert ALL.restrict(None) is None
    assert ALL.visible(["a"]) == ["a"]
    ALL.require_all_kbs()
