"""Judgements from ratings, and in TREC's files."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbkit.errors import ConfigError
from kbkit.feedback.judgements import Judgements, query_id
from kbkit.models.ratings import fold_query


def grades(kb):
    return kb.feedback.judgements().grades


def test_stars_become_grades(kb):
    ids = [chunk.id for chunk in kb.chunks][:5]
    for stars, target in enumerate(ids, 1):
        kb.rate(target, stars, query="tea")
    assert grades(kb) == {"tea": dict(zip(ids, (0, 0, 1, 2, 3), strict=True))}


def test_last_ratings_of_raters_are_averaged(kb, chunk):
    target = chunk("Bread")
    for stars, rater in ((1, "ann"), (4, "ann"), (5, "bob")):
        kb.rate(target, stars, query="bread", rater=rater)
    (judgement,) = kb.feedback.judgements()
    assert (judgement.grade, judgement.raters) == (3, 2)  # 4.5 stars are 5
    kb.rate(target, 1, query="bread", rater="cid")
    assert grades(kb) == {"bread": {target: 1}}  # 3.3 stars


def test_queries_are_compared_without_case_and_white_space(kb, chunk):
    kb.rate(chunk("Bread"), 5, query="How  long\tdoes Bread rise")
    kb.rate(chunk("Milk"), 1, query=" how long does bread RISE\n")
    kb.rate(chunk("Milk"), 5, query="milk")
    judgements = kb.feedback.judgements()
    assert list(judgements.grades) == ["How long does Bread rise", "milk"]
    assert len(judgements) == 3
    assert len(judgements.grades["How long does Bread rise"]) == 2


def test_ratings_without_query_or_chunk_are_no_judgements(kb, chunk):
    kb.rate(chunk("Bread"), 5)
    kb.rate(chunk("Bread"), 5, query="  ")
    kb.rate(kb.documents["http://x.org/tea.html"].id, 5, query="tea")
    kb.rate(chunk("Milk"), 5, query="milk")
    assert len(kb.feedback.judgements()) == 1
    kb.documents.delete("http://x.org/milk.html")
    assert len(kb.feedback.judgements()) == 0
    assert kb.feedback.judgements().to_frame().empty


def test_frame_has_a_row_per_judgement(kb, chunk):
    kb.rate(chunk("Bread"), 4, query="bread")
    frame = kb.feedback.judgements().to_frame()
    assert list(frame.columns) == ["query_id", "query", "chunk_id", "grade", "raters"]
    assert frame.iloc[0].tolist() == [query_id("bread"), "bread", chunk("Bread"), 2, 1]


def test_judgements_are_a_sequence():
    judgements = Judgements.of({" two  words ": {"a": 1, "b": 0}, "three": {"a": 100}})
    assert [one.query for one in judgements] == ["two words", "two words", "three"]
    assert (judgements[2].grade, judgements[0].raters) == (100, 0)
    assert judgements[1:] == Judgements(judgements.judgements[1:])
    assert repr(judgements) == "<Judgements: 3 of 2 queries>"
    shown = judgements._repr_html_()
    assert shown.count("<tr") == 4
    assert "<th>0</th>" not in shown
    many = Judgements.of({"tea": {str(number): 1 for number in range(21)}})
    assert "<td>...</td>" in many._repr_html_()
    assert list(judgements.queries.values()) == ["two words", "three"]


def test_qrels_are_read_by_tools_of_trec(kb, chunk, tmp_path):
    kb.rate(chunk("Bread"), 5, query="how long does bread rise")
    kb.rate(chunk("Milk"), 1, query="how long does bread rise")
    topics = kb.feedback.judgements().to_qrels(tmp_path / "kitchen.qrels")
    qrels = ir_measures.read_trec_qrels(str(tmp_path / "kitchen.qrels"))
    grades = {(one.doc_id, one.relevance) for one in qrels}
    assert grades == {(chunk("Bread"), 3), (chunk("Milk"), 0)}
    query = "how long does bread rise"
    assert topics.read_text() == f"{query_id(query)}\t{query}\n"


names = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip),
            st.dictionaries(names, st.integers(0, 100), min_size=1),
        ),
        max_size=5,
        unique_by=lambda pair: fold_query(pair[0]),
    )
)
def test_qrels_are_restored_from_files(tmp_path_factory, pairs):
    judgements = Judgements.of(dict(pairs))
    path = tmp_path_factory.mktemp("trec") / "a.qrels"
    judgements.to_qrels(path)
    assert Judgements.from_qrels(path).grades == judgements.grades


@pytest.mark.parametrize(
    ("qrels", "topics", "message"),
    [
        ("q1 0 c1\n", "q1\ttea\n", ":1: not a query id, 0, a chunk id and a grade"),
        ("\nq1 0 c1 2.5\n", "q1\ttea\n", ":2: grade '2.5'"),
        ("q1 0 c1 101\n", "q1\ttea\n", "whole number up to 100"),
        ("q1 0 c1 " + "9" * 9999, "q1\ttea\n", "whole number up to 100"),
        ("q1 0 c1 0000001\n", "q1\ttea\n", "grade '0000001'"),
        ("q1 0 c1 ²\n", "q1\ttea\n", "grade '²'"),
        ("q2 0 c1 1\n", "q1\ttea\n", "no query 'q2' in"),
        ("q1 0 c1 1\nq1 0 c1 2\n", "q1\ttea\n", ":2: c1 has another grade"),
        ("q1 0 c1 1\n", "q1 tea\n", "topics.tsv:1: not a query id, a tab and a query"),
        ("q1 0 c1 1\n", "q1\ttea\nq1\tmilk\n", "topics.tsv:2: the query id 'q1' is repeated"),
        ("q1 0 c1 1\n", None, "topics.tsv: No such file"),
        (None, "q1\ttea\n", "a.qrels: No such file"),
        ("q1 0 \udcff 1\n", "q1\ttea\n", "a.qrels: not UTF-8"),
    ],
)
def test_invalid_file_is_one_clear_error(tmp_path, qrels, topics, message):
    path = tmp_path / "a.qrels"
    if qrels is not None:
        path.write_text(qrels, "utf-8", "surrogateescape")
    if topics is not None:
        (tmp_path / "a.qrels.topics.tsv").write_text(topics)
    with pytest.raises(ConfigError) as caught:
        Judgements.from_qrels(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_qrels_of_other_tools_are_read(tmp_path):
    (tmp_path / "q.tsv").write_text("\ufeff1\tTea  time\n2\ttea TIME\n", "utf-8")
    (tmp_path / "x.qrels").write_text("1 Q0 a -1\r\n1\t0\tb\t2\n2 0 c 1\n2 0 d 000100\n")
    read = Judgements.from_qrels(tmp_path / "x.qrels", tmp_path / "q.tsv")
    assert read.grades == {"Tea time": {"a": 0, "b": 2, "c": 1, "d": 100}}


@pytest.mark.parametrize(
    "mapping",
    [
        *({query: {"a": 1}} for query in ("", " \n", 3)),
        *({"q": {"a": grade}} for grade in (-1, 101, True, 1.5)),
        {"q": {7: 1}},
        {"q": {"a": 1}, "Q ": {"b": 1}},
    ],
    ids=str,
)
def test_invalid_grades_are_refused(mapping):
    with pytest.raises(ConfigError):
        Judgements.of(mapping)


def test_unwritable_files_are_one_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="name a file in a folder"):
        Judgements.of({"q": {"a": 1}}).to_qrels(tmp_path / "none" / "a.qrels")
    with pytest.raises(ConfigError, match="qrels need a single word"):
        Judgements.of({"q": {"a b": 1}}).to_qrels(tmp_path / "a.qrels")
