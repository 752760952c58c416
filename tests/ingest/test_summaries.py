"""Texts of summaries."""

import pytest

from kbkit.ingest.cutting import DESCRIPTION_LENGTH as LINE
from kbkit.ingest.cutting import MAX_SUMMARY_LENGTH as LENGTH
from kbkit.ingest.cutting import describe, summary_text
from tests.growth import grows_with

pytestmark = pytest.mark.local

PROSE = "Brews leaves in water that is nearly boiling, as long as you like it to."
MANUAL = f"# tea(1)\n\n{PROSE}\n\n## NAME\n\ntea - make tea\n\n## OPTIONS\n\n-h\n"
NUMBERED = f"# 3.1. Tea\n\n{PROSE}\n\n## 3.1.1. Green\n\n## B. Black\n\n## 2024 in tea\n"
JAPANESE = "緑茶は、摘んだ葉をすぐに蒸して作るお茶です。水は七十五度がよい。"


def summary_of(title, content):
    return summary_text(title, content, describe(title, content, {}))


@pytest.mark.parametrize(
    ("title", "content", "summary"),
    [
        ("tea(1)", MANUAL, "tea(1). tea - make tea NAME; OPTIONS"),
        ("3.1. Tea", NUMBERED, f"Tea. {PROSE} Green; Black; 2024 in tea"),
        ("Tea", "# Tea\n\n## Green\n\n- one\n\n## Black\n\n- two\n", "Tea Green; Black"),
        ("Tea", "```\nbrew(water, leaves)\n```\n", "Tea"),
        ("Tea", "", "Tea"),
        ("", "", ""),
        ("", "tea", "tea"),
        ("緑茶", f"# 緑茶\n\n{JAPANESE}\n", f"緑茶. {JAPANESE}"),
        ("C. elegans", f"{PROSE}", f"C. elegans. {PROSE}"),
    ],
)
def test_summary_has_title_description_and_headings(title, content, summary):
    assert summary_of(title, content) == summary


def test_summary_of_a_document_of_tables_has_their_text():
    text = summary_of("Prices", "| tea | price |\n| --- | --- |\n| green | 3 |\n")
    assert text.startswith("Prices. tea")
    assert "green" in text


def test_long_parts_of_a_summary_end_with_a_sentence_or_word():
    text = summary_of("Tea", " ".join([PROSE] * 20))
    assert text == "Tea. " + " ".join([PROSE] * (len(text) // len(PROSE)))
    assert 100 < len(text) < 400
    one = summary_of("Tea", "leaves of tea " * 200)
    assert one.endswith(("leaves", "of", "tea"))


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"## Part {n}\n\n" for n in range(50_000)),
        "[" * 20_000,
        "> " * 5_000 + PROSE,
        "*" * 20_000 + PROSE,
        "<div>" * 10_000,
        "\x00\ud800".encode("utf-8", "replace").decode() * 1_000,
        "|" * 50_000 + "\n" + "|-" * 20_000,
        "word " * 200_000,
    ],
    ids=["headings", "brackets", "quotes", "stars", "html", "odd", "table", "long"],
)
def test_summaries_of_hostile_documents_are_bounded_and_take_linear_time(content):
    title = "x" * 3_000

    def summarise(size):
        line = describe(title, content[:size], {"description": content[:size]})
        return line, summary_of(title, content[:size])

    grows_with(summarise, len(content) // 8)
    line, text = summarise(len(content))
    assert len(line) <= LINE
    assert "\n" not in line
    assert "\x00" not in line
    assert len(text) <= LENGTH
    assert text.startswith("x" * 150)
