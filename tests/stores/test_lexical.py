import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.stores.sqlite import lexical
from kbkit.text import analyzer

ENGLISH = analyzer("english")


def terms_of(text):
    return " ".join(ENGLISH.terms(text))


def found(database, kb_id, query, limit=10):
    with database.read() as transaction:
        frequencies = transaction.lexical.document_frequencies(kb_id, ENGLISH.terms(query))
        return transaction.lexical.candidates(kb_id, frequencies, limit)


def index(database, kb_id, *texts):
    rows = [(number, terms_of(text)) for number, text in enumerate(texts, 1)]
    with database.write() as transaction:
        transaction.lexical.add(kb_id, rows)
    return rows


@pytest.mark.parametrize(
    "term",
    [
        "C++", "c#", "--dry-run", "-v", "os.path.join", "append_event", "v1.2.3", "std::vector",
        "utf-8", "o'clock", "__init__", "naïve", "Größe", "日本語", "R&D", "key=value",
    ],
)  # fmt: skip
def test_a_term_with_marks_is_found(database, kb_id, term):
    index(database, kb_id, "Some other text.", f"About {term} in a sentence.", "The end.")
    assert found(database, kb_id, term) == [2]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(text=st.text(max_size=80) | st.from_regex(r"(\w[.:'#+_-]{0,3}){1,12}", fullmatch=True))
def test_every_term_of_any_text_is_found(database, kb_id, text):
    terms = set(ENGLISH.terms(text))
    rows = index(database, kb_id, text)
    with database.read() as transaction:
        assert transaction.lexical.document_frequencies(kb_id, terms) == dict.fromkeys(terms, 1)
    for term in terms:
        with database.read() as transaction:
            assert transaction.lexical.candidates(kb_id, {term: 1}, 10) == [1]
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows)


def test_what_was_added_and_removed_leaves_an_empty_index(database, kb_id):
    rows = index(database, kb_id, "tea in C++", "tea with --dry-run", "tea")
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows[:2])
    with database.read() as transaction:
        assert transaction.lexical.document_frequencies(kb_id, ["tea", "c++"]) == {"tea": 1}
    with database.write() as transaction:
        transaction.lexical.remove(kb_id, rows[2:])
        query = sa.text(f"SELECT count(*) FROM lexical_{kb_id}_terms")
        left = transaction.execute(query).scalar()
    assert left == 0
    assert found(database, kb_id, "tea") == []


def test_document_frequency_counts_chunks_and_not_occurrences(database, kb_id):
    index(database, kb_id, "tea tea tea", "tea", "water")
    with database.read() as transaction:
        frequencies = transaction.lexical.document_frequencies(kb_id, ["tea", "water", "salt"])
    assert frequencies == {"tea": 2, "water": 1}


def test_common_terms_give_way_to_rare_ones(database, kb_id, monkeypatch):
    monkeypatch.setattr(lexical, "_MOST_POSTINGS", 10)
    index(database, kb_id, *["common"] * 20, "common rare")
    assert found(database, kb_id, "common rare") == [21]
    assert len(found(database, kb_id, "common", 30)) == 21  # on its own it is all there is


def test_indexes_of_two_knowledge_bases_are_apart(database, kb_id):
    with database.write() as transaction:
        transaction.lexical.create("other")
        transaction.lexical.add("other", [(1, "tea")])
    assert found(database, kb_id, "tea") == []
    with database.write() as transaction:
        transaction.lexical.drop("other")
        transaction.lexical.drop("other")  # twice is harmless


@pytest.mark.parametrize("query", ['"', 'a" OR "b', "NEAR(a, b)", "x*", "terms:a", "^a", "a AND b"])
def test_fts_syntax_in_a_query_is_only_text(database, kb_id, query):
    index(database, kb_id, "nothing like it")
    with database.read() as transaction:
        assert transaction.lexical.candidates(kb_id, {query: 1}, 10) == []


@pytest.mark.parametrize("kb", ["", "a-b", "x; DROP TABLE chunks", 'a"b'])
def test_only_plain_ids_become_table_names(database, kb):
    with pytest.raises(ValueError, match="^" + kb.replace("(", r"\(") + "$"):
        lexical._table(kb)
