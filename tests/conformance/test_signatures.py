"""What is called on a served workspace is written as on one in a folder."""

from __future__ import annotations

import inspect

import pytest

from kbkit import KnowledgeBase, Workspace
from kbkit.client import AsyncWorkspace, RemoteWorkspace
from kbkit.client.annotations import AsyncAnnotations, RemoteAnnotations
from kbkit.client.calls import steps
from kbkit.client.chunks import (
    AsyncChunks,
    AsyncRatings,
    AsyncSources,
    RemoteChunks,
    RemoteRatings,
    RemoteSources,
)
from kbkit.client.documents import AsyncDocuments, RemoteDocuments
from kbkit.client.entries import AsyncEntries, RemoteEntries
from kbkit.client.feedback import AsyncFeedback, RemoteFeedback
from kbkit.client.files import AsyncFiles, RemoteFiles
from kbkit.client.graph import AsyncGraph, RemoteGraph
from kbkit.client.knowledge_base import AsyncKnowledgeBase, RemoteKnowledgeBase
from kbkit.entries.entries import Entries
from kbkit.files.files import Files
from kbkit.graph.graph import Graph
from kbkit.knowledge_base.annotations import Annotations
from kbkit.knowledge_base.chunks import Chunks
from kbkit.knowledge_base.documents import Documents
from kbkit.knowledge_base.feedback import Feedback, Ratings
from kbkit.knowledge_base.sources import Sources

ONLY_LOCAL = {
    Files: {"path"},
    Entries: {"path"},
    Workspace: {"path", "rebuild"},
    KnowledgeBase: {"path"},
}
"""What is refused, since it lies on another machine's disk."""
SET_LATER = {
    KnowledgeBase: {
        "name",
        "documents",
        "chunks",
        "ratings",
        "sources",
        "annotations",
        "feedback",
        "plot",
    },
    Workspace: {"files", "entries", "graph"},
}
"""What the local class has as a property, and the other sets when it is made."""
PAIRS = [
    (Files, RemoteFiles),
    (Entries, RemoteEntries),
    (Workspace, RemoteWorkspace),
    (KnowledgeBase, RemoteKnowledgeBase),
    (Documents, RemoteDocuments),
    (Chunks, RemoteChunks),
    (Ratings, RemoteRatings),
    (Graph, RemoteGraph),
    (Sources, RemoteSources),
    (Annotations, RemoteAnnotations),
    (Feedback, RemoteFeedback),
]


def _public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("local", "remote"), PAIRS, ids=lambda kind: kind.__name__)
def test_a_remote_class_has_the_calls_of_the_local_one(local, remote):
    missing = ONLY_LOCAL.get(local, set()) | SET_LATER.get(local, set())
    assert _public(local) - _public(remote) == missing
    for name in _public(local) & _public(remote):
        if not callable(getattr(local, name)):
            continue  # a property
        ours, theirs = (
            inspect.signature(getattr(local, name)),
            inspect.signature(getattr(remote, name)),
        )
        assert [(p.name, p.kind) for p in theirs.parameters.values()] == [
            (p.name, p.kind) for p in ours.parameters.values()
        ], name
        for key, parameter in ours.parameters.items():
            if not callable(parameter.default):
                assert theirs.parameters[key].default == parameter.default, (name, key)


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [
        (RemoteFiles, AsyncFiles),
        (RemoteEntries, AsyncEntries),
        (RemoteWorkspace, AsyncWorkspace),
        (RemoteKnowledgeBase, AsyncKnowledgeBase),
        (RemoteDocuments, AsyncDocuments),
        (RemoteChunks, AsyncChunks),
        (RemoteRatings, AsyncRatings),
        (RemoteGraph, AsyncGraph),
        (RemoteSources, AsyncSources),
        (RemoteAnnotations, AsyncAnnotations),
        (RemoteFeedback, AsyncFeedback),
    ],
)
def test_what_is_awaited_is_the_same_definition(blocking, awaited):
    calls = {name for name in _public(blocking) if isinstance(getattr(blocking, name), steps)}
    assert calls
    assert calls == {name for name in _public(awaited) if isinstance(getattr(awaited, name), steps)}
    for name in calls:
        assert getattr(blocking, name) is getattr(awaited, name)
