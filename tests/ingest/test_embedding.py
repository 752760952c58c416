"""Embedding of texts once each, with kept batches after a failure."""

import pytest
import sqlalchemy as sa

from kbkit.errors import EmbedderError

SECTIONS = "\n\n".join(f"## Part {n}\n\nNumber {n} says hello to nr{n}x." for n in range(40))


def waiting(workspace):
    with workspace._stores.database.read() as transaction:
        return transaction.execute(sa.text("SELECT count(*) FROM embedded")).scalar()


def test_batches_before_a_failed_one_are_not_embedded_again(workspace, wordy, wordy_config):
    kb = workspace.create("notes", spec=wordy_config())
    wordy.batches.clear()
    wordy.breaks_at = 9
    with pytest.raises(EmbedderError, match="out of credit"):
        kb.add("Long", SECTIONS)
    assert kb.info().documents == 0
    assert waiting(workspace) == 8 * 4
    failed = wordy.batches.pop()
    wordy.breaks_at = 0
    kb.add("Long", SECTIONS)
    texts = [text for batch in wordy.batches for text in batch]
    assert len(texts) == len(set(texts)) == 40
    assert wordy.batches[8] == failed
    assert waiting(workspace) == 0
    assert kb.search("nr17x")[0].chunk.anchor == "part-17"


def test_repeated_text_is_embedded_once(workspace, wordy, wordy_config):
    kb = workspace.create("notes", spec=wordy_config())
    wordy.batches.clear()
    kb.add("Same", "The same words.\n\n" * 60, source="a")
    kb.add("Same", "The same words.\n\n" * 60, source="b")
    texts = [text for batch in wordy.batches for text in batch]
    assert len(texts) == len(set(texts))
