"""Query encoders in the catalog, one for each knowledge base."""

from datetime import UTC, datetime

import numpy as np
import pytest

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import ratings
from kbkit.stores.catalog.schema import query_encoders as encoder_table
from tests.stores.workspaces import create_row

TERMS = ("append", "os.path", "naïve", "日本")


def save(database, kb_id, terms=TERMS, embedder="model", vectors=None):
    if vectors is None:
        vectors = np.random.default_rng(0).standard_normal((len(terms), 6)).astype(np.float32)
    state = ratings.EncoderState(embedder, datetime.now(UTC), 3, 7, {"lambda": 0.4})
    with database.write() as connection:
        ratings.save_encoder(connection, kb_id, ratings.EncoderRow(state, terms, vectors))
    return vectors


def test_encoders_of_knowledge_bases_are_separate(database, kb_id):
    vectors = save(database, kb_id)
    with database.write() as connection:
        other = create_row(connection, "other").id
    save(database, other, ("earlier",))
    with database.write() as connection:
        ratings.remove_encoder(connection, other)
        assert ratings.load_encoder(connection, other) is None
        row = ratings.load_encoder(connection, kb_id)
    assert row.terms == TERMS
    np.testing.assert_allclose(row.vectors, vectors, rtol=1e-3, atol=1e-6)


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
