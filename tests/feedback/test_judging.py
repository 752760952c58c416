"""Rounds of judging: what is left, what was said, how well search does on it."""

import pytest

from kbkit.errors import ConfigError, KbkitError, NotFoundError
from kbkit.feedback.judgements import Judgements, load_queries
from kbkit.recipes import Question

QUERIES = ["how long does bread rise", "milk in tea"]


def test_a_round_goes_on_where_it_was_left(kb):
    first = kb.feedback.judging(QUERIES, rater="ann")
    assert (first.pool_size(0), first.judged(0), first.is_done(0)) == (None, 0, False)
    for one in first.pool(0):
        first.judge(0, one.hit.chunk.id, 3)
    assert first.is_done(0)
    first.judge(1, first.pool(1)[0].hit.chunk.id, 5)
    again = kb.feedback.judging(QUERIES, rater="ann")
    assert again.is_done(0)
    assert not again.is_done(1)
    assert again.scores(1) == {first.pool(1)[0].hit.chunk.id: 5}
    assert kb.feedback.judging(QUERIES, rater="bob").judged(0) == 0
    frame = again.to_frame()
    assert frame["judged"].tolist() == [again.pool_size(0), 1]
    assert frame["ndcg@10"].between(0, 1).all()
    other = kb.feedback.judging(QUERIES, rater="bob")
    assert other.to_frame()["pooled"].tolist() == frame["pooled"].tolist()


def test_what_is_taken_back_is_as_if_it_was_never_said(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    target = judging.pool(0)[0].hit.chunk.id
    kb.rate(target, 2, query=QUERIES[0].upper(), rater="ann")
    kb.rate(target, 2, query=QUERIES[0], rater="bob")
    judging.refresh()
    judging.judge(0, target, 4)
    assert judging.unjudge(0, target)
    assert not judging.unjudge(0, target)
    assert judging.judged(0) == 0
    assert kb.ratings.to_frame()["rater"].tolist() == ["bob"]


def test_ratings_do_not_change_what_is_there_to_be_judged(kb):
    before = [
        one.hit.chunk.id for one in kb.feedback.pool(QUERIES[0], limit=1, unshown=1, rater="ann")
    ]
    for chunk in kb.chunks:
        kb.rate(chunk.id, 1 if chunk.id in before else 5, query=QUERIES[0], rater="ann")
    after = [
        one.hit.chunk.id for one in kb.feedback.pool(QUERIES[0], limit=1, unshown=1, rater="ann")
    ]
    assert after == before


def test_each_rater_has_an_order_of_their_own(shared):
    orders = {
        tuple(one.hit.chunk.id for one in shared.feedback.pool(QUERIES[0], rater=f"rater {number}"))
        for number in range(8)
    }
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


def test_the_interim_score_is_what_evaluate_says(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    assert judging.interim_score() is None
    for place in range(2):
        for number, one in enumerate(judging.pool(place)):
            judging.judge(place, one.hit.chunk.id, 5 if number == 0 else 1)
            if (place, number) == (0, 0):
                assert judging.interim_score().queries == 1
    score = judging.interim_score()
    assert score.ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert (score.queries, score.judged) == (2, kb.feedback.evaluate().results[0].judged)
    for number, one in enumerate(judging.pool(1)):
        judging.judge(1, one.hit.chunk.id, 1 if number == 0 else 5)
    assert judging.interim_score().ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert judging.interim_score() != score


def test_others_are_heard_when_they_are_asked_for(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    target = judging.pool(0)[0].hit.chunk.id
    judging.judge(0, target, 4)
    kb.rate(target, 4, query=QUERIES[0], rater="bob")
    assert judging.agreement().passages == ()
    kb.rate(target, 4, query="something else", rater="cid")
    kb.rate(next(iter(kb.documents)).id, 4, query=QUERIES[0], rater="cid")
    judging.refresh()
    assert judging.agreement().raters == ("ann", "bob")


def test_what_others_said_is_in_the_interim_score(kb):
    judging = kb.feedback.judging(QUERIES[:1], rater="ann")
    for number, one in enumerate(judging.pool(0)):
        judging.judge(0, one.hit.chunk.id, 5 if number == 0 else 1)
    before = judging.interim_score()
    for number, one in enumerate(judging.pool(0)):
        kb.rate(one.hit.chunk.id, 1 if number == 0 else 5, query=QUERIES[0], rater="bob")
    judging.refresh()
    assert judging.interim_score().ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert judging.interim_score() != before


def test_pools_are_made_anew_when_documents_changed(kb):
    judging = kb.feedback.judging(QUERIES)
    before = len(judging.pool(0))
    kb.add("Rye", "How long does bread of rye rise?")
    judging.refresh()
    assert (judging.pool_size(0), len(judging.pool(0))) == (before, before)
    judging.refresh(documents=True)
    assert judging.pool_size(0) is None
    assert len(judging.pool(0)) == before + 1


def test_pools_are_made_anew_when_many_were_asked_for(kb):
    judging = kb.feedback.judging([f"bread {number}" for number in range(40)], rater="ann")
    ids = [one.hit.chunk.id for one in judging.pool(0)]
    for place in range(40):
        judging.pool(place)
    assert len(judging._pools) < 40
    assert [one.hit.chunk.id for one in judging.pool(0)] == ids
    assert judging.pool_size(20)


def test_queries_come_in_many_forms(tmp_path):
    wanted = ("how to read", "how to write")
    questions = [Question(question=text, relevant=("x",)) for text in wanted]
    (tmp_path / "q.tsv").write_text("how to read\tx\nhow  to write\tx,y\n")
    (tmp_path / "q.txt").write_text("# queries\nhow to read\n\n  HOW to read\nhow to write\n")
    (tmp_path / "r.yaml").write_text(
        "name: r\nsources: [{type: package, name: json}]\nquestions: q.tsv\n"
    )
    judgements = Judgements.of({text: {"a": 1} for text in wanted})
    forms = [
        wanted,
        questions,
        judgements,
        tmp_path / "q.tsv",
        str(tmp_path / "q.txt"),
        tmp_path / "r.yaml",
        iter(wanted),
    ]
    for form in forms:
        assert load_queries(form) == wanted


@pytest.mark.parametrize(
    "given",
    [[], ["", " "], "no/such/file.txt", "how to read", 7, None, [7], "no.yaml", "x" * 5000, "\0"],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_query_is_one_clear_error(given):
    with pytest.raises(KbkitError) as raised:
        load_queries(given)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "arguments",
    [{"limit": 0}, {"unshown": -1}, {"seed": 1.5}, {"seed": 2**63}, {"rater": 3}],
    ids=str,
)
def test_wrong_numbers_are_refused_at_once(shared, arguments):
    with pytest.raises(ConfigError):
        shared.feedback.judging(QUERIES, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 1},
        {"limit": 100},
        {"unshown": 0},
        {"unshown": 100},
        {"seed": 0},
        {"seed": 2**63 - 1},
    ],
    ids=str,
)
def test_numbers_at_the_ends_are_taken(shared, arguments):
    judging = shared.feedback.judging(["bread"], **arguments)
    assert len(judging.pool(0)) > 0
    assert len(shared.feedback.pool("bread", **arguments)) > 0


def test_a_chunk_that_is_gone_cannot_be_judged(kb):
    judging = kb.feedback.judging(QUERIES)
    with pytest.raises(NotFoundError):
        judging.judge(0, "no such chunk", 3)
    assert judging.judged(0) == 0
