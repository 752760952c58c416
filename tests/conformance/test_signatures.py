"""Local, remote and asynchronous classes have the same calls."""

from __future__ import annotations

import inspect

import pytest

from kbkit import KnowledgeBase, Workspace
from kbkit.client import AsyncWorkspace, RemoteWorkspace
from kbkit.client.calls import steps
from kbkit.client.chunks import (
    AsyncAnnotations,
    AsyncChunks,
    AsyncRatings,
    AsyncSources,
    RemoteAnnotations,
    RemoteChunks,
    RemoteRatings,
    RemoteSources,
)
from kbkit.client.documents import AsyncDocuments, RemoteDocuments
from kbkit.client.files import AsyncEntries, AsyncFiles, RemoteEntries, RemoteFiles
from kbkit.client.graph import AsyncGraph, RemoteGraph
from kbkit.client.knowledge_base import (
    AsyncFeedback,
    AsyncKnowledgeBase,
    RemoteFeedback,
    RemoteKnowledgeBase,
)
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
    Entries: {"export_skills", "import_skills", "path"},
    Workspace: {"bundle", "path", "rebuild", "restore"},
    KnowledgeBase: {"path"},
}
"""Names that are refused remotely, since they concern another machine's disk."""
KB_PROPERTIES = "name documents chunks ratings sources annotations feedback plot"
SET_LATER = {KnowledgeBase: set(KB_PROPERTIES.split()), Workspace: {"files", "entries", "graph"}}
"""Properties of the local class that a remote object sets when it is created."""
CLASSES = [
    (Files, RemoteFiles, AsyncFiles),
    (Entries, RemoteEntries, AsyncEntries),
    (Workspace, RemoteWorkspace, AsyncWorkspace),
    (KnowledgeBase, RemoteKnowledgeBase, AsyncKnowledgeBase),
    (Documents, RemoteDocuments, AsyncDocuments),
    (Chunks, RemoteChunks, AsyncChunks),
    (Ratings, RemoteRatings, AsyncRatings),
    (Graph, RemoteGraph, AsyncGraph),
    (Sources, RemoteSources, AsyncSources),
    (Annotations, RemoteAnnotations, AsyncAnnotations),
    (Feedback, RemoteFeedback, AsyncFeedback),
]


def _public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("local", "remote", "_"), CLASSES, ids=lambda kind: kind.__name__)
def test_remote_class_has_the_calls_of_the_local_one(local, remote, _):
    missing = ONLY_LOCAL.get(local, set()) | SET_LATER.get(local, set())
    assert _public(local) - _public(remote) == missing
    for name in _public(local) & _public(remote):
        if not callable(getattr(local, name)):
            continue  # a property
        ours = inspect.signature(getattr(local, name)).parameters
        theirs = inspect.signature(getattr(remote, name)).parameters
        assert [(each.name, each.kind) for each in theirs.values()] == [
            (each.name, each.kind) for each in ours.values()
        ], name
        for key, parameter in ours.items():
            if not callable(parameter.default):
                assert theirs[key].default == parameter.default, (name, key)


@pytest.mark.parametrize(("_", "blocking", "awaited"), CLASSES, ids=lambda kind: kind.__name__)
def test_asynchronous_class_shares_the_definitions_of_calls(_, blocking, awaited):
    calls = {name for name in _public(blocking) if isinstance(getattr(blocking, name), steps)}
    assert calls
    assert calls == {name for name in _public(awaited) if isinstance(getattr(awaited, name), steps)}
    for name in calls:
        assert getattr(blocking, name) is getattr(awaited, name)
