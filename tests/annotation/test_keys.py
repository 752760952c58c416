"""The normal form of names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.models import SubjectKind
from kbkit.text import MAX_KEY_LENGTH, subject_key

ENTITY = SubjectKind.ENTITY


@pytest.mark.parametrize(
    "same",
    [
        ("connection pool", "Connection Pools", "ConnectionPool", "connection_pool"),
        ("connection pool", "connection-pool", "connectionPool", "`connection  pool`"),
        ("os.path", "os.path()", "`os.path`"),
        ("append_event", "appendEvent", "append_event()"),
        ("URL", "urls", "URLs"),
        ("Queries", "query"),
        ("caf\u00e9", "cafe\u0301", "CAF\u00c9"),
        ("\u05e7\u05d5\u05d1\u05e5", "\u200f\u05e7\u05d5\u05d1\u05e5"),
    ],
)
def test_forms_of_one_name_have_one_key(same):
    assert len({subject_key(ENTITY, name) for name in same}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("os.path", "os.Path"),
        ("-v", "-V"),
        ("--all", "all"),
        ("--all", "--all-files"),
        ("SQLITE_BUSY", "sqlite busy"),
        ("__init__", "init"),
        ("C", "c"),
        ("C", "C++"),
        ("Go", "go"),
        ("get_object", "get_objects"),
        ("process", "proces"),
        ("status", "statu"),
        ("a.b", "a b"),
    ],
)
def test_different_names_have_different_keys(one, other):
    assert subject_key(ENTITY, one) != subject_key(ENTITY, other)


def test_normal_form_depends_on_the_kind_of_subject():
    assert subject_key(SubjectKind.DOMAIN, "Query Plans") == "query plan"
    assert subject_key(SubjectKind.PROBLEM, "Database is locked.") == "database is locked"
    assert subject_key(SubjectKind.CONTEXT, "Python 3.11") == "python 3.11"


@given(st.sampled_from(SubjectKind), st.text(max_size=300))
def test_key_is_bounded_and_its_own_key(kind, name):
    key = subject_key(kind, name)
    assert len(key) <= MAX_KEY_LENGTH
    again = subject_key(kind, key)  # as a phrase, of which the last word may be a plural
    assert subject_key(kind, again) == again
