"""Summaries in the catalog."""

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.stores.catalog import knowledge_bases, summaries
from kbkit.stores.catalog.schema import documents, summary_vectors
from kbkit.stores.catalog.schema import summaries as summaries_table


@pytest.mark.local
def test_changed_summary_vectors_are_found_in_linear_time(tmp_path):
    """Quadratic time took an hour for a million summaries."""
    steps = []
    for count in (200, 800):
        with kbkit.open(tmp_path / str(count)) as workspace:
            kb = workspace.create("docs")
            document = kb.add("One", "Some text.")
            values = {"kb_id": kb.id, "version": 9}
            with kb._stores.database.write() as transaction:
                of = transaction.execute(sa.select(documents)).mappings().one()
                some = range(count)
                transaction.execute(
                    documents.insert(), [{**of, "id": f"d{n}", "uri": f"d:{n}"} for n in some]
                )
                summary = {**values, "version": 1, "text": "", "revision": 1}
                transaction.execute(
                    summaries_table.insert(),
                    [{**summary, "document_id": f"d{n}", "embed_hash": f"h{n}"} for n in some],
                )
                row = knowledge_bases.get_by_id(transaction, kb.id)
                vector = {**values, "embedder": row.summary_embedder, "vector": b"\0\0"}
                transaction.execute(
                    summary_vectors.insert(), [{**vector, "embed_hash": f"h{n}"} for n in some]
                )
            with kb._stores.database.read() as transaction:
                taken = []
                connection = transaction._connection.connection.driver_connection
                connection.set_progress_handler(lambda to=taken: to.append(1) or 0, 100)
                changed = summaries.changed_since(transaction, row, 8)
                connection.set_progress_handler(None, 0)
            assert set(changed.document_ids) == {f"d{n}" for n in some}
            assert document.id not in changed.document_ids
            steps.append(len(taken))
    assert steps[1] < 8 * steps[0]  # it was sixteen times
