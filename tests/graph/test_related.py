"""Chunks that share rare subjects."""

from __future__ import annotations

import pytest

from kbkit.errors import ConfigError, NotFoundError


def test_chunks_that_share_rare_subjects_are_related(workspace, kb):
    for number in range(30):
        kb.add(
            f"d{number}",
            f"# Page {number}\n\nAll set `pool.size` here ({number}).",
            source=f"http://x.org/{number}",
        )
    kb.add("a", "# A\n\nSet `pool.size` and `pool.timeout`.", source="http://x.org/a")
    kb.add("b", "# B\n\n`pool.timeout` is in seconds.", source="http://x.org/b")
    by_text = {chunk.text: chunk.id for chunk in kb.chunks}
    a, b = (
        next(by_text[text] for text in by_text if text.startswith(head)) for head in ("# A", "# B")
    )
    (found,) = kb.related(a)
    assert (found.chunk_id, found.title, found.uri) == (b, "b", "http://x.org/b")
    assert [name.lower() for name in found.shared] == ["pool.timeout"]
    assert kb.related(b)[0].chunk_id == a
    with pytest.raises(NotFoundError, match="no chunk"):
        kb.related("none")
    with pytest.raises(ConfigError, match="limit"):
        kb.related(a, limit=0)
