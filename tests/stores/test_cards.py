"""Cards in the catalog."""

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.stores.catalog import cards, knowledge_bases
from kbkit.stores.catalog.schema import card_vectors, documents
from kbkit.stores.catalog.schema import cards as cards_table


@pytest.mark.local
def test_vectors_that_came_for_all_cards_are_found_by_a_look_at_each(tmp_path):
    """As when a model has embedded all: to look at all cards for each took an hour of a million."""
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
                card = {**values, "version": 1, "text": "", "revision": 1}
                transaction.execute(
                    cards_table.insert(),
                    [{**card, "document_id": f"d{n}", "embed_hash": f"h{n}"} for n in some],
                )
                row = knowledge_bases.get_by_id(transaction, kb.id)
                held = {**values, "embedder": row.card_embedder, "vector": b"\0\0"}
                transaction.execute(
                    card_vectors.insert(), [{**held, "embed_hash": f"h{n}"} for n in some]
                )
            with kb._stores.database.read() as transaction:
                taken = []
                connection = transaction._connection.connection.driver_connection
                connection.set_progress_handler(lambda to=taken: to.append(1) or 0, 100)
                found = cards.changed_since(transaction, row, 8)
                connection.set_progress_handler(None, 0)
            assert set(found.document_ids) == {f"d{n}" for n in some}
            assert document.id not in found.document_ids
            steps.append(len(taken))
    assert steps[1] < 8 * steps[0]  # it was sixteen times
