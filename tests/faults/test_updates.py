"""A document that is stored anew all the time is found by every search beside that."""

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
def test_a_document_that_is_updated_is_in_every_search_beside_it(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        kb.add("Tea", "# Tea\n\nSteep tea.\n", source="http://x.org/tea")
        kb.add("Milk", "# Milk\n\nKeep milk cold.\n")
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert writer.stdout.readline()
            found, seen = [], set()
            while len(seen) < 25:
                hits = kb.search("steep tea")
                found.append("Tea" in [hit.title for hit in hits])
                seen.add(hits[0].chunk.text)
        finally:
            writer.kill()
            writer.communicate()
    assert all(found), f"missing from {found.count(False)} of {len(found)} searches"
