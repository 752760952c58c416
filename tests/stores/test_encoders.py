"""Query encoders in the catalog, one for each knowledge base."""

from datetime import UTC, datetime

import numpy as np
import pytest

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import ratings
from kbkit.stores.catalog.schema import query_encoders as encoder_table

TERMS = ("append", "os.path", "naïve", "日本")


def save(database, kb_id, terms=TERMS, embedder="model", vectors=None):
    if vectors is None:
        vectors = np.random.default_rng(0).standard_normal((len(terms), 6)).astype(np.float32)
    state = ratings.EncoderState(embedder, datetime.now(UTC), 3, 7, {"lambda": 0.4})
    with database.write() as connection:
        ratings.save_encoder(connection, kb_id, ratings.EncoderRow(state, terms, vectors))
    return vectors


def test_encoder_round_trip(database, kb_id):
    save(database, kb_id, ("earlier",), embedder="other")
    vectors = save(database, kb_id)
    with database.read() as connection:
        row = ratings.load_encoder(connection, kb_id)
        fitted = ratings.fitted_embedder(connection, kb_id)
        assert row.state == ratings.encoder_state(connection, kb_id)
    assert row.terms == TERMS
    assert fitted == ("model", row.state.fitted_at)
    assert row.vectors.dtype == np.float32
    np.testing.assert_allclose(row.vectors, vectors, rtol=1e-3, atol=1e-6)
    state = row.state
    assert (state.embedder, state.version, state.chunks) == ("model", 3, 7)
    assert state.report == {"lambda": 0.4}
    assert state.fitted_at.tzinfo is not None


def test_removed_encoder_is_none(database, kb_id):
    save(database, kb_id)
    with database.write() as connection:
        ratings.remove_encoder(connection, kb_id)
    with database.read() as connection:
        assert ratings.load_encoder(connection, kb_id) is None
        assert ratings.encoder_state(connection, kb_id) is None


@pytest.mark.parametrize(
    ("terms", "rows"), [((), 0), (("two words",), 1), (("double  space", "x"), 2), (("a", "b"), 1)]
)
def test_each_row_needs_one_term(database, kb_id, terms, rows):
    with pytest.raises(WorkspaceError, match="needs one row"):
        save(database, kb_id, terms=terms, vectors=np.ones((rows, 2), np.float32))


@pytest.mark.parametrize("values", [{"terms": ""}, {"vectors": b"abc"}, {"vectors": b"ab" * 7}])
def test_damaged_encoder_is_explained(database, kb_id, values):
    save(database, kb_id)
    with database.write() as connection:
        connection.execute(encoder_table.update().values(**values))
    with database.read() as connection, pytest.raises(WorkspaceError, match="fit it again"):
        ratings.load_encoder(connection, kb_id)
