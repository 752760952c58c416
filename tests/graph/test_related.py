"""Chunks that share rare subjects."""

import pytest

from kbkit.errors import ConfigError, NotFoundError


def test_chunks_that_share_rare_subjects_are_related(workspace, kb):
    for number in range(30):
        text = f"# Page {number}\n\nAll set `pool.size` here ({number})."
        kb.add(f"d{number}", text, source=f"http://x.org/{number}")
    kb.add("a", "# A\n\nSet `pool.size` and `pool.timeout`.", source="http://x.org/a")
    kb.add("b", "# B\n\n`pool.timeout` is in seconds.", source="http://x.org/b")
    by_heading = {chunk.text[:3]: chunk.id for chunk in kb.chunks}
    a, b = by_heading["# A"], by_heading["# B"]
    (related,) = kb.related(a)
    assert (related.chunk_id, related.title, related.uri) == (b, "b", "http://x.org/b")
    assert [name.lower() for name in related.shared] == ["pool.timeout"]
    assert kb.related(b)[0].chunk_id == a
    with pytest.raises(NotFoundError, match="no chunk"):
        kb.related("none")
    with pytest.raises(ConfigError, match="limit"):
        kb.related(a, limit=0)
