"""The index of words in a catalog."""

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.stores import sqlite_database as transaction
from kbkit.text.analysis import analyzer

ENGLISH = analyzer("english")


def terms_of(text):
    return " ".join(ENGLISH.terms(text))


def search(database, kb_id, query):
    with database.read() as transaction:
        postings = transaction.lexical.postings(kb_id, ENGLISH.terms(query))
    return sorted({seq for seqs, _ in postings.values() for seq in seqs.tolist()})


def index(database, kb_id, *texts):
    rows = [(number, terms_of(text)) for number, text in enumerate(texts, 1)]
    with database.write() as transaction:
        transaction.lexical.add(kb_id, rows)
    return rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=st.text(max_size=80) | st.from_regex(r"(\w[.:'#+_-]{0,3}){1,12}", fullmatch=True))
def test_every_term_of_any_text_is_found(database, kb_id, text):
    terms = set(ENGLISH.terms(text))
    rows = index(database, kb_id, text)
    with database.read() as transaction:
        postings = transaction.lexical.postings(kb_id, terms)
    seqs = {term: rows.tolist() for term, (rows, _) in postings.items()}
    assert seqs == {term: [1] for term in terms}
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows)


@pytest.mark.local
def test_index_is_empty_after_removing_all_rows(database, kb_id):
    rows = index(database, kb_id, "tea in C++", "tea with --dry-run", "tea")
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows[:2])
    with database.read() as transaction:
        postings = transaction.lexical.postings(kb_id, ["tea", "c++"])
    assert {term: seqs.tolist() for term, (seqs, _) in postings.items()} == {"tea": [3]}
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows[2:])
        transaction.lexical.postings(kb_id, ["tea"])  # makes the table of instances
        query = sa.text(f"SELECT count(*) FROM lexical_{kb_id}_instances")
        left = transaction.execute(query).scalar()
    assert left == 0
    assert search(database, kb_id, "tea") == []


def test_indexes_of_knowledge_bases_are_separate(database, kb_id):
    with database.write() as transaction:
        transaction.lexical.create("other")
        transaction.lexical.add("other", [(1, "tea")])
    assert search(database, kb_id, "tea") == []
    with database.write() as transaction:
        transaction.lexical.drop("other")
        transaction.lexical.drop("other")  # twice is harmless


@pytest.mark.parametrize("kb", ["", "a-b", "x; DROP TABLE chunks", 'a"b'])
def test_only_plain_ids_become_table_names(database, kb):
    with pytest.raises(ValueError, match="^" + kb.replace("(", r"\(") + "$"):
        transaction.lexical_table(kb)
