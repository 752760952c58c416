"""A document that is replaced again and again is in every concurrent search."""

import subprocess
import sys

import pytest

import kbkit

WRITER = """
import sys, kbkit
with kbkit.open(sys.argv[1]) as workspace:
    kb = workspace["notes"]
    for turn in range(10**9):
        kb.add("Tea", f"# Tea\\n\\nSteep tea for {turn} minutes.\\n", source="http://x.org/tea")
        print(turn, flush=True)
"""


@pytest.mark.soak
def test_updated_document_is_in_every_concurrent_search(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        kb.add("Tea", "# Tea\n\nSteep tea.\n", source="http://x.org/tea")
        kb.add("Milk", "# Milk\n\nKeep milk cold.\n")
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert writer.stdout.readline()
            included, seen = [], set()
            while len(seen) < 25:
                hits = kb.search("steep tea")
                included.append("Tea" in [hit.title for hit in hits])
                seen.add(hits[0].chunk.text)
        finally:
            writer.kill()
            writer.communicate()
    assert all(included), f"missing from {included.count(False)} of {len(included)} searches"
