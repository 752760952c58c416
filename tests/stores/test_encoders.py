"""Query encoders are kept as they were fitted, one a knowledge base."""

import numpy as np
import pytest
import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import knowledge_bases, query_encoders
from kbkit.stores.catalog.schema import query_encoders as encoder_table

TERMS = ("append", "os.path", "naïve", "日本")


def save(database, kb_id, terms=TERMS, seed=0, **values):
    vectors = np.random.default_rng(seed).standard_normal((len(terms), 6)).astype(np.float32)
    given = {"embedder": "model", "version": 3, "chunks": 7, "report": {"lambda": 0.4}} | values
    with database.write() as connection:
        query_encoders.save(connection, kb_id, terms=terms, vectors=vectors, **given)
    return vectors


def test_an_encoder_comes_back_as_it_was_saved(database, kb_id):
    vectors = save(database, kb_id)
    with database.read() as connection:
        row = query_encoders.load(connection, kb_id)
        assert row.state == query_encoders.state(connection, kb_id)
    assert row.terms == TERMS
    assert row.vectors.dtype == np.float32
    np.testing.assert_allclose(row.vectors, vectors, rtol=1e-3, atol=1e-6)
    state = row.state
    assert (state.embedder, state.version, state.chunks) == ("model", 3, 7)
    assert state.report == {"lambda": 0.4}
    assert state.fitted_at.tzinfo is not None


def test_a_knowledge_base_without_one_has_none(database, kb_id):
    save(database, kb_id)
    with database.write() as connection:
        query_encoders.remove(connection, kb_id)
    with database.read() as connection:
        assert query_encoders.load(connection, kb_id) is None
        assert query_encoders.state(connection, kb_id) is None


def test_the_newest_takes_the_place_of_the_one_before(database, kb_id):
    save(database, kb_id)
    save(database, kb_id, terms=("other",), seed=1, version=4, embedder="another")
    with database.read() as connection:
        row = query_encoders.load(connection, kb_id)
    assert (row.terms, row.state.version, row.state.embedder) == (("other",), 4, "another")


def test_it_goes_with_its_knowledge_base(database, kb_id):
    save(database, kb_id)
    with database.write() as connection:
        knowledge_bases.delete(connection, kb_id)
        assert connection.execute(sa.select(encoder_table)).first() is None


@pytest.mark.parametrize("terms", [(), ("two words",), ("double  space", "x")])
def test_terms_that_could_not_be_told_apart_are_refused(database, kb_id, terms):
    with pytest.raises(WorkspaceError, match="needs one row"):
        save(database, kb_id, terms=terms)


def test_terms_and_rows_have_to_be_as_many(database, kb_id):
    with database.write() as connection, pytest.raises(WorkspaceError, match="2 terms and 1 rows"):
        query_encoders.save(
            connection,
            kb_id,
            embedder="m",
            version=1,
            chunks=1,
            terms=("a", "b"),
            vectors=np.ones((1, 2), np.float32),
            report={},
        )


@pytest.mark.parametrize("values", [{"terms": ""}, {"vectors": b"abc"}, {"vectors": b"ab" * 7}])
def test_a_damaged_table_is_named(database, kb_id, values):
    save(database, kb_id)
    with database.write() as connection:
        connection.execute(encoder_table.update().values(**values))
    with database.read() as connection, pytest.raises(WorkspaceError, match="fit it again"):
        query_encoders.load(connection, kb_id)
