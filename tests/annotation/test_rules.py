"""Annotation by rules: frames of statements, and names in chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.annotation.gazetteer import NameGazetteer
from kbkit.annotation.problems import RulesAnnotator
from kbkit.models import EntityType as T
from kbkit.models import StatementType
from kbkit.stores.catalog.subjects import GivenName
from tests.annotation.documents import passage

TYPES = {
    **{"connection pool": T.TERM, "pool.Pool.acquire": T.SYMBOL, "--size": T.FLAG},
    **{"PoolTimeout": T.ERROR, "PoolTimeoutError": T.ERROR},
}
NAMES = NameGazetteer([GivenName(name, kind) for name, kind in TYPES.items()])


def annotations(text, path=(), **about):
    (statements,) = RulesAnnotator().annotate([passage(text, path, **about)], NAMES)
    return statements


def test_item_without_text_states_nothing():
    (whole,) = annotations("- \u00a0")  # the item of a list that begins with code
    assert whole.frame is None


INSTALL = "To install it, run the following command:\n\n```sh\npip install x\n```\n"


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("1.  Install the package.\n2.  Open the file.\n3.  Run the server.\n", "procedure"),
        (INSTALL, "procedure"),
        ("The name must be unique. It must not be longer than 30 characters.", "constraint"),
        ("A transaction is required here, and it can only be used once.", "constraint"),
        ("It is slow because every row is read. Therefore the plan changes.", "causal"),
        ("If the pool is empty, then the call blocks, which causes a delay.", "causal"),
        ("There are three kinds of locks. A lock consists of a name and a mode.", "taxonomy"),
        ("This is an alias for the other one, and has the same meaning.", "equivalence"),
        ("It is deprecated in favour of the new call.", "equivalence"),
        ("Usually one pool is enough. It is best practice to share it.", "pattern"),
    ],
)
def test_frame_follows_cues_and_blocks(text, frame):
    first = annotations(text)[0]
    assert first.frame is StatementType(frame)
    assert 0.3 < first.confidence <= 1


def test_changes_of_a_release_are_not_a_procedure():
    text = "1.  Add the new option.\n2.  Update the banner.\n3.  Remove the old call.\n"
    assert annotations(text, ["Release history", "2014-03-10 (3.8.4)"])[0].frame is None


@pytest.mark.parametrize(
    "text",
    [
        "```python\nif x: must(never())\n```\n",
        "| Name | Must |\n| --- | --- |\n| connection pool | because |\n",
        "### pool {#pool}\n",
        "    def get(self):\n        return self._pool['must'](never=True, always={1: 2})\n",
        "response = get(request.method, request=request)\n    if x(a, b) or (c[0] != d['must']):\n"
        "        raise ValidationError(self.messages['never'], code='required', params={'a': b})\n",
        "Die Verbindung muss immer geschlossen werden, weil sie sonst nie wieder frei wird.",
        "\u63a5\u7d9a\u306f\u5fc5\u305a\u9589\u3058\u306a\u3051\u308c\u3070\u306a\u3089\u306a\u3044\u3002",
        "",
        " \n\n",
    ],
)
def test_code_tables_and_other_languages_have_no_frame(text):
    (only,) = annotations(text)
    assert only.frame is None
    assert (only.start, only.end, only.text) == (0, len(text), text)


def test_names_in_code_and_tables_are_entities():
    code = "```python\nconn = pool.Pool.acquire(timeout=3)\n```\n"
    assert annotations(code)[0].entities == ("pool.Pool.acquire",)
    table = "| Option | Meaning |\n| --- | --- |\n| `--size` | of the connection pool |\n"
    assert annotations(table)[0].entities == ("--size", "connection pool")


def test_anchor_of_a_heading_qualifies_its_name():
    text = "### acquire(timeout) {#pool.Pool.acquire}\n\nWaits for one, as `acquire` does.\n"
    assert annotations(text)[0].entities == ("pool.Pool.acquire",)


def test_normal_form_is_plain_text_on_one_line():
    text = (
        "-   The [**connection\n    pool**](http://x/) has `min\\_size`, see [here][1]. {#pool}\n"
    )
    (only,) = annotations(text)
    assert only.normalized_text == "The connection pool has min\\_size, see here."


def test_normal_form_of_a_long_chunk_is_bounded():
    filler = "The sky over the harbour is grey and the boats lie still. " * 12
    text = f"Pools are shared. {filler}A pool must never be forked, and it must be closed. {filler}"
    first = annotations(text)[0]
    assert first.frame in {StatementType.CONSTRAINT, None}
    assert len(first.normalized_text) <= 602


def test_sentences_with_another_frame_have_their_own_annotation():
    text = (
        "The size must be positive. It must not change, and it must be set first. "
        "`acquire` is an alias for pool.Pool.acquire, and has the same meaning as `get`, a synonym."
    )
    first, second = annotations(text)
    assert {first.frame, second.frame} == {StatementType.CONSTRAINT, StatementType.EQUIVALENCE}
    assert text[second.start : second.end] == second.text != text
    assert first.entities == ("pool.Pool.acquire",)


def test_problems_and_resolutions_are_found():
    text = (
        "The connection pool fails with `PoolTimeoutError` when it is empty.\n\n"
        "```\nPoolTimeoutError: no connection within 3 s\n```\n\n"
        "To fix this, give it a larger size."
    )
    first = annotations(text, ["Guide", "Troubleshooting"])[0]
    assert first.problems == (
        "Troubleshooting",
        "PoolTimeoutError: no connection within 3 s",
        "The connection pool fails with PoolTimeoutError when it is empty.",
        "PoolTimeoutError",
    )
    assert first.resolutions == ("To fix this, give it a larger size.",)


def test_contexts_are_versions_platforms_and_the_heading():
    text = (
        "Changed in version 3.8: works on Windows and macOS with PostgreSQL 12.1, see 1.2 and "
        "/usr/lib/linux. "
    )
    first = annotations(text, ["asyncio", "Platform support"])[0]
    products = ("version 3.8", "PostgreSQL 12.1", "Windows", "macOS")
    assert first.contexts == (*products, "Platform support")


def test_domains_are_tags_and_titles():
    path = ["2. Query planner", "Joins", "Introduction"]
    first = annotations("Text.", path, title="Introduction", tags=["sql"])[0]
    assert first.domains == ("sql", "Query planner", "Joins")


_PIECES = st.sampled_from(
    [
        *("must ", "1.  Run it.\n", "`", "```\n", "\n\n", "- ", "| a |", "\0", "\x01"),
        *("# T {#x}\n", "](", "[", "If so, then. ", "\u063a", "\u9023", "\U0001f600"),
        *("Error: no\n", "3.11 "),
    ]
)


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_annotations_of_any_text_have_valid_spans(text):
    statements = annotations(text)
    assert 1 <= len(statements) <= 3
    for one in statements:
        assert one.text == text[one.start : one.end]
        assert "\n" not in one.normalized_text
        assert 0 <= one.confidence <= 1
        assert one.annotator == RulesAnnotator().fingerprint
