"""Rounds of judging, with progress and interim scores."""

import pytest

from kbkit.errors import ConfigError, KbkitError, NotFoundError
from kbkit.feedback.judgements import Judgements, load_queries
from kbkit.recipes import Question

QUERIES = ["how long does bread rise", "milk in tea"]


def ids(pool):
    return [candidate.hit.chunk.id for candidate in pool]


def test_round_of_judging_is_resumed(kb):
    first = kb.feedback.judging(QUERIES, rater="ann")
    assert (first.pool_size(0), first.count_judged(0), first.is_done(0)) == (None, 0, False)
    for chunk_id in ids(first.pool(0)):
        first.judge(0, chunk_id, 3)
    assert first.is_done(0)
    best = ids(first.pool(1))[0]
    first.judge(1, best, 5)
    again = kb.feedback.judging(QUERIES, rater="ann")
    assert again.is_done(0)
    assert not again.is_done(1)
    assert again.scores(1) == {best: 5}
    assert kb.feedback.judging(QUERIES, rater="bob").count_judged(0) == 0
    frame = again.to_frame()
    assert frame["judged"].tolist() == [again.pool_size(0), 1]
    assert frame["ndcg@10"].between(0, 1).all()
    other = kb.feedback.judging(QUERIES, rater="bob")
    assert other.to_frame()["pooled"].tolist() == frame["pooled"].tolist()


def test_unjudge_deletes_all_ratings_of_the_rater(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    target = ids(judging.pool(0))[0]
    kb.rate(target, 2, query=QUERIES[0].upper(), rater="ann")
    kb.rate(target, 2, query=QUERIES[0], rater="bob")
    judging.refresh()
    judging.judge(0, target, 4)
    assert judging.unjudge(0, target)
    assert not judging.unjudge(0, target)
    assert judging.count_judged(0) == 0
    assert kb.ratings.to_frame()["rater"].tolist() == ["bob"]


def test_ratings_do_not_change_pools(kb):
    options = {"limit": 1, "unshown": 1, "rater": "ann"}
    before = ids(kb.feedback.pool(QUERIES[0], **options))
    for chunk in kb.chunks:
        kb.rate(chunk.id, 1 if chunk.id in before else 5, query=QUERIES[0], rater="ann")
    assert ids(kb.feedback.pool(QUERIES[0], **options)) == before


def test_order_of_a_pool_depends_on_the_rater(shared):
    pools = (shared.feedback.pool(QUERIES[0], rater=f"rater {number}") for number in range(8))
    orders = {tuple(ids(pool)) for pool in pools}
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


def judge(judging, place, first, others):
    for number, chunk_id in enumerate(ids(judging.pool(place))):
        judging.judge(place, chunk_id, first if number == 0 else others)


def test_interim_score_is_that_of_evaluate(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    assert judging.interim_score() is None
    judging.judge(0, ids(judging.pool(0))[0], 5)
    assert judging.interim_score().queries == 1
    for place in range(2):
        judge(judging, place, 5, 1)
    score = judging.interim_score()
    assert score.ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert (score.queries, score.judged) == (2, kb.feedback.evaluate().results[0].judged)
    judge(judging, 1, 1, 5)
    assert judging.interim_score().ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert judging.interim_score() != score


def test_refresh_reads_ratings_of_others(kb):
    judging = kb.feedback.judging(QUERIES, rater="ann")
    target = ids(judging.pool(0))[0]
    judging.judge(0, target, 4)
    kb.rate(target, 4, query=QUERIES[0], rater="bob")
    assert judging.agreement().passages == ()
    kb.rate(target, 4, query="something else", rater="cid")
    kb.rate(next(iter(kb.documents)).id, 4, query=QUERIES[0], rater="cid")
    judging.refresh()
    assert judging.agreement().raters == ("ann", "bob")


def test_interim_score_has_ratings_of_others(kb):
    judging = kb.feedback.judging(QUERIES[:1], rater="ann")
    judge(judging, 0, 5, 1)
    before = judging.interim_score()
    judge(kb.feedback.judging(QUERIES[:1], rater="bob"), 0, 1, 5)
    judging.refresh()
    assert judging.interim_score().ndcg == pytest.approx(kb.feedback.evaluate().ndcg)
    assert judging.interim_score() != before


def test_pools_are_renewed_after_changed_documents(kb):
    judging = kb.feedback.judging(QUERIES)
    before = len(judging.pool(0))
    kb.add("Rye", "How long does bread of rye rise?")
    judging.refresh()
    assert (judging.pool_size(0), len(judging.pool(0))) == (before, before)
    judging.refresh(documents=True)
    assert judging.pool_size(0) is None
    assert len(judging.pool(0)) == before + 1


def test_queries_are_loaded_from_values_and_files(tmp_path):
    queries = ("how to read", "how to write")
    questions = [Question(question=text, relevant=("x",)) for text in queries]
    judgements = Judgements.of({text: {"a": 1} for text in queries})
    table, text, recipe = (tmp_path / name for name in ("q.tsv", "q.txt", "r.yaml"))
    table.write_text("how to read\tx\nhow  to write\tx,y\n")
    text.write_text("# queries\nhow to read\n\n  HOW to read\nhow to write\n")
    recipe.write_text("name: r\nsources: [{type: package, name: json}]\nquestions: q.tsv\n")
    judgements.to_qrels(tmp_path / "q.qrels")
    files = (table, str(text), recipe, tmp_path / "q.qrels")
    for form in (queries, questions, judgements, *files, iter(queries)):
        assert load_queries(form) == queries


@pytest.mark.parametrize(
    "wrong",
    [[], ["", " "], "no/such/file.txt", "how to read", 7, None, [7], "no.yaml", "x" * 5000, "\0"],
    ids=lambda value: repr(value)[:20],
)
def test_invalid_queries_are_one_short_error(wrong):
    with pytest.raises(KbkitError) as raised:
        load_queries(wrong)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "arguments",
    [{"limit": 0}, {"unshown": -1}, {"seed": 1.5}, {"seed": 2**63}, {"rater": 3}],
    ids=str,
)
def test_invalid_options_of_judging_are_errors(shared, arguments):
    with pytest.raises(ConfigError):
        shared.feedback.judging(QUERIES, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        *({"limit": limit} for limit in (1, 100)),
        *({"unshown": unshown} for unshown in (0, 100)),
        *({"seed": seed} for seed in (0, 2**63 - 1)),
    ],
    ids=str,
)
def test_options_at_their_bounds_are_accepted(shared, arguments):
    judging = shared.feedback.judging(["bread"], **arguments)
    assert len(judging.pool(0)) > 0
    assert len(shared.feedback.pool("bread", **arguments)) > 0


def test_unknown_chunk_cannot_be_judged(kb):
    judging = kb.feedback.judging(QUERIES)
    with pytest.raises(NotFoundError):
        judging.judge(0, "no such chunk", 3)
    assert judging.count_judged(0) == 0
