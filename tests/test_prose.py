"""The words that `make lint` refuses."""

import pytest

pytest.importorskip("proselint")


def test_listed_words_are_found_in_prose_and_docstrings_only(tmp_path):
    from tests.prose import findings

    guide = tmp_path / "guide.md"
    guide.write_text("# Guide\n\nThe index\nis made anew.\n\n    made anew\n\n`anew`\n")
    assert [each.partition("guide.md:")[2] for each in findings(guide)] == [
        "4: 'anew': write again"
    ]
    module = tmp_path / "module.py"
    module.write_text('"""Index."""\n\nWORD = "anew"\n"""Begin\nanew."""\n')
    assert [each.partition("module.py:")[2] for each in findings(module)] == [
        "5: 'anew': write again"
    ]
