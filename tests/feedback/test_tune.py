"""Tuning finds better settings, and ranks as search does."""

import itertools
import json
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import kbkit
from kbkit import cli
from kbkit.errors import ConfigError
from kbkit.feedback.evaluate import CandidateCache, _ideal_dcg
from kbkit.feedback.evaluation_set import evaluation_set
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Difference
from kbkit.feedback.tune import RANGES, Trials, _points, _with_all_retrievers
from kbkit.feedback.tune_report import TuneReport
from kbkit.knowledge_base import handle_of
from kbkit.models import SourceDocument, from_dict
from kbkit.recipes import KnowledgeBaseSpec, Question, RetrievalSpec, load_recipe

TOPICS = ("garden", "kitchen", "weather", "travel", "music", "money")
TEXT = (
    "rose thyme spade oven butter spoon rain cloud frost train hotel map violin drum opera bank "
    "coin loan"
)
WORDS = TEXT.split()
BAD = RetrievalSpec(dense_weight=1.0, document_weight=1.5, title_weight=0.0, heading_weight=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tune") / "kb"


@pytest.fixture(scope="module")
def base(folder):
    """A knowledge base whose headings have the words of the questions."""
    generator = random.Random(5)
    with kbkit.open(folder) as workspace:
        config = KnowledgeBaseSpec(retrieval=BAD)
        kb = workspace.create("topics", spec=config)
        documents = []
        for topic, number in itertools.product(TOPICS, range(8)):
            title, sections = f"{topic} {number}", []
            for part in range(4):
                code = f"{topic[:2]}{number}{part}x"
                text = " ".join(generator.choices(WORDS, k=40))
                sections.append(f"## Setting {code}\n\nUse {code}. {text}.\n")
            content = f"# {title}\n\n" + "\n".join(sections)
            documents.append(SourceDocument(f"text:{title}", title, content))
        kb.ingest(documents)
        yield kb


@pytest.fixture(scope="module")
def judged(base):
    """Judgements of questions: one chunk that answers, and others that do not."""
    chunks = [chunk for chunk in base.chunks if "Use " in chunk.text]
    generator = random.Random(6)
    grades = {}
    for chunk in generator.sample(chunks, 30):
        code = chunk.text.split("Use ")[1].split(".")[0]
        words = " ".join(generator.sample(WORDS, 3))
        others = dict.fromkeys((other.id for other in generator.sample(chunks, 3)), 0)
        grades[f"setting {code} {words}"] = others | {chunk.id: 3}
    return Judgements.of(grades)


@pytest.fixture(scope="module")
def report(base, judged):
    return base.feedback.tune(judged)


def test_bad_settings_lose_to_proposed_ones_on_held_out_queries(base, report):
    assert report.wins
    assert report.tuned_ndcg > report.present_ndcg + 0.05
    assert report.difference.p_value < 0.01
    assert report.proposed.dense_weight < 0.7
    assert report.settings == report.proposed
    assert base.spec.retrieval == BAD, "nothing is written unless asked for"
    assert not report.kept
    assert len(report.folds) == 25
    assert sum(fold.queries for fold in report.folds if fold.repeat == 1) == report.queries == 30


@pytest.mark.slow
def test_settings_tuned_on_half_are_no_worse_on_the_other_half(base, judged):
    for seed in range(3):
        queries = list(judged.grades)
        random.Random(seed).shuffle(queries)
        half = {query: judged.grades[query] for query in queries[:15]}
        other = Judgements.of({query: judged.grades[query] for query in queries[15:]})
        settings = base.feedback.tune(Judgements.of(half), seed=seed).settings
        tuned = base.feedback.evaluate(other, retrieval=settings)
        assert tuned.ndcg >= base.feedback.evaluate(other).ndcg


def test_good_settings_are_kept(base, judged, report):
    with kbkit.open(base._stores.folder) as workspace:
        kb = workspace["topics"]
        kb.configure(kb.spec.model_copy(update={"retrieval": report.proposed}))
        again = kb.feedback.tune(judged, keep=True)
        kb.configure(kb.spec.model_copy(update={"retrieval": BAD}))
    assert not again.wins
    assert not again.kept
    assert again.settings == report.proposed
    assert "the present settings stay" in again.reason


def test_winning_settings_are_stored_on_request(base, judged):
    with kbkit.open(base._stores.folder) as workspace:
        kb = workspace["topics"]
        report = kb.feedback.tune(judged, keep=True)
        assert report.kept
        assert kb.spec.retrieval == report.proposed
        before = base.feedback.evaluate(judged, retrieval=BAD)
        assert kb.feedback.evaluate(judged).ndcg > before.ndcg
        kb.configure(kb.spec.model_copy(update={"retrieval": BAD}))


@pytest.mark.slow
def test_command_line_tunes(folder, base, judged, report, tmp_path):
    qrels = tmp_path / "j.qrels"
    judged.to_qrels(qrels)
    command = ["--workspace", str(folder), "tune", "topics", "--judgements", str(qrels)]
    shown = CliRunner().invoke(cli.app, command)
    assert shown.exit_code == 0
    assert f"{report.present_ndcg:.3f}" in shown.stdout
    assert shown.stdout.endswith(report.to_yaml())
    assert "the proposed settings win" in shown.stderr
    assert "nothing changed" in shown.stderr
    assert base.spec.retrieval == BAD
    try:
        kept = CliRunner().invoke(cli.app, [*command, "--keep", "--json"])
        assert json.loads(kept.stdout)["kept"]
        assert base.spec.retrieval == report.proposed
    finally:
        base.configure(KnowledgeBaseSpec(retrieval=BAD))


@pytest.mark.slow
def test_tuning_is_reproducible(base, judged, report):
    assert base.feedback.tune(judged) == report
    assert base.feedback.tune(judged, seed=3).folds != report.folds


def test_report_fits_into_a_recipe(report, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    part = report.to_yaml()
    recipe.write_text(f"name: a\nsources:\n  - type: files\n    path: '*.md'\n{part}")
    assert load_recipe(recipe).retrieval == report.settings
    assert set(yaml.safe_load(part)["retrieval"]) == set(RANGES)


@pytest.mark.parametrize("by_page", [False, True])
def test_trials_rank_exactly_like_search(base, judged, by_page):
    questions = judged
    if by_page:
        uris = {document.id: document.uri for document in base.documents}
        pages = {chunk.id: uris[chunk.document_id] for chunk in base.chunks}
        questions = [
            Question(question=query, relevant=[pages[known] for known in grades])
            for query, grades in judged.grades.items()
        ]
    settings = [
        BAD,
        RetrievalSpec(),
        RetrievalSpec(dense_weight=0.8, duplicates=0.7),
        RetrievalSpec(dense_weight=0.0, per_document=1, heading_weight=1.0),
    ]
    tasks = evaluation_set(handle_of(base), questions)
    for one in settings:
        steps = []
        trials = CandidateCache.fetch(handle_of(base), tasks, one, steps.append)
        assert [each.message for each in steps] == [query.text for query in tasks]
        figures = base.feedback.evaluate(questions, retrieval=one).values()["ndcg@10"]
        np.testing.assert_allclose(trials.ndcg(one), figures, atol=1e-12)
    assert len(CandidateCache.fetch(handle_of(base), tasks, settings[2]).near_duplicates) > 0


def test_retrievers_without_weight_are_tried(base, judged):
    alone = RetrievalSpec(summary_weight=0, page_weight=0, candidates=7)
    tasks = evaluation_set(handle_of(base), judged)
    features = CandidateCache.fetch(handle_of(base), tasks, alone).features
    assert not features.page.any()
    whole = _with_all_retrievers(alone)
    assert whole.candidates == 7
    assert whole.summary_weight == RetrievalSpec().summary_weight
    assert CandidateCache.fetch(handle_of(base), tasks, whole).features.page.any()
    assert _with_all_retrievers(RetrievalSpec(page_weight=0.1)).page_weight == 0.1


def test_too_few_queries_and_invalid_seed_are_errors(base, judged):
    few = Judgements.of(dict(list(judged.grades.items())[:9]))
    with pytest.raises(ConfigError, match=r"needs 10 queries .* there are 9"):
        base.feedback.tune(few)
    with pytest.raises(ConfigError, match="rate some chunks"):
        base.feedback.tune()
    with pytest.raises(ConfigError, match="seed=-1"):
        base.feedback.tune(judged, seed=-1)


def test_tuning_by_queries_without_hits_proposes_nothing(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        kb.add("One", "Only this page is here.")
        (chunk,) = kb.chunks
        judgements = Judgements.of({f"zzz{n} qqq{n}": {chunk.id: 3} for n in range(10)})
        report = kb.feedback.tune(judgements)
    assert not report.wins
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_weight_of_learned_questions_is_tuned_if_there_are_some(base, judged):
    first = next(iter(judged))
    assert "learned_weight" not in base.feedback.tune(judged).weights
    rating = base.rate(first.chunk_id, 5, query=f"{first.query} please")
    try:
        report = base.feedback.tune(judged)
        assert "learned_weight" in report.weights
        assert "rating_weight" not in report.weights, "judgements leave ratings aside"
    finally:
        base.ratings.delete(rating.id)


def test_choice_is_the_mean_of_the_best_sixteen():
    points = np.arange(40.0)[:, None] / 100
    trials = Trials(BAD, ("title_weight",), None, points)
    assert (
        trials.best_settings(np.repeat(points, 3, axis=1)).title_weight == 0.32
    )  # of 0.24 to 0.39


def test_report_has_25_folds_and_is_restored_from_json(report):
    assert len(report.folds) == 25
    folds = {(fold.repeat, fold.fold) for fold in report.folds}
    assert folds == set(itertools.product(range(1, 6), range(1, 6)))
    assert report.tried == 256
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert values["wins"]
    assert from_dict(TuneReport, values) == report
    frame = report.to_frame()
    assert len(frame) == 25
    assert frame.index.names == ["repeat", "fold"]
    assert frame.loc[(2, 3), "queries"] == report.folds[7].queries
    assert "the proposed settings win" in report.reason
    assert report.reason in repr(report)
    assert report.reason in report._repr_html_()


def test_settings_win_by_a_significant_gain_only(report):
    for mean, p_value, wins in (0.2, 0.009, True), (-0.2, 0.001, False), (0.2, 0.01, False):
        other = replace(report, difference=Difference(mean, mean - 0.1, mean + 0.1, p_value))
        assert other.wins is wins
        assert other.settings == (other.proposed if wins else other.present)
    assert "may be chance" in other.reason
    none = replace(report, difference=Difference(0.0, -0.1, 0.1, 1.0))
    assert "not an improvement" in none.reason


def test_held_out_queries_have_no_part_in_the_choice(base, judged):
    handle = handle_of(base)
    cache = CandidateCache.fetch(handle, evaluation_set(handle, judged), BAD)
    trials = Trials(BAD, tuple(RANGES), cache, _points(RANGES))
    figures = np.random.default_rng(3).random((len(trials.points), 30))
    now = cache.ndcg(BAD)
    usual, _ = trials.cross_validate(figures, now, 0)
    for query in (0, 17):
        changed = figures.copy()
        changed[:16, query] += 1000  # leads to another choice
        otherwise, _ = trials.cross_validate(changed, now, 0)
        same = [a.weights == b.weights for a, b in zip(usual, otherwise, strict=True)]
        held_out = [sum(same[first : first + 5]) for first in range(0, 25, 5)]
        assert held_out == [1] * 5, "each repeat holds a query out once"


def test_ideal_order_begins_with_the_highest_grade():
    best = 3 + 2 / np.log2(3) + 1 / np.log2(4)
    assert _ideal_dcg(SimpleNamespace(gains={"a": 1, "b": 3, "c": 2})) == pytest.approx(best)
