"""Models embed after an ingest; static vectors serve searches meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from threading import Thread
from types import SimpleNamespace

import pytest

import kbkit
from kbkit.embedding.onnx import MiniLmEmbedder
from kbkit.errors import ConfigError, EmbedderError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.knowledge_base.improving import Improving
from kbkit.recipes import JsonlSource, KnowledgeBaseSpec, OnnxEmbedding, load_recipe
from kbkit.runtime import processes
from kbkit.workspace import processes as improver
from tests.waiting import until

MINILM = OnnxEmbedding(preset="minilm")
MANY = 60
NEW_LOOK = """
import sys, kbkit
left = kbkit.open(sys.argv[1])["drinks"].improve()
print(left.summaries, left.chunks)
"""


def lines(path, count, start=0):
    """A source of documents that have summaries."""
    texts = {"rm": "# rm\n\nRemoves entries of a directory that nobody has any use for.\n"}
    for n in range(start, start + count):
        sentence = f"Is drunk from a cup of number {n}, which stands where the host has put it."
        texts[f"Tea {n}"] = f"# Tea {n}\n\n{sentence}\n\n## Brewing\n\nBoil kettle {n}.\n"
    with path.open("w") as file:
        for title, text in texts.items():
            uri = title.lower().replace(" ", ":")
            file.write(json.dumps({"uri": uri, "title": title, "text": text}) + "\n")
    return JsonlSource(path=str(path))


@pytest.fixture
def open_in(tmp_path, monkeypatch):
    """Opens the workspace with a setting, and kills its workers after the test."""
    opened = []

    def open_(mode, foreground=0):
        monkeypatch.setenv("KBKIT_IMPROVE", mode)
        monkeypatch.setattr("kbkit.knowledge_base.improving._FOREGROUND", foreground)
        opened.append(kbkit.open(tmp_path / "kb"))
        return opened[-1]

    before = [*processes._outliving]
    yield open_
    for workspace in opened:
        workspace.close()
    for process in processes._outliving:
        if process not in before:
            process.kill()
            process.wait()


def worker():
    """The latest process in the background."""
    return processes._outliving[-1]


@pytest.mark.slow
def test_search_switches_once_to_the_model_after_embedding(open_in, tmp_path):
    kb = open_in("background").create("drinks")
    report = kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    assert report.new == MANY + 1
    assert report.improvement.running
    assert 0 < report.improvement.summaries < MANY
    assert report.improvement.seconds > 0
    seen = []
    while True:
        waiting = kb.info().summaries_waiting
        hits = kb.search("delete file")
        parts = hits[0].parts
        assert parts.summary > 0
        seen.append(handle_of(kb).row().summary_embedder.partition(":")[0])
        if seen[-1] == "static":
            assert "not embedded by the model yet" in hits.notes[0]
        if not waiting and seen[-1] == "onnx":
            break
        time.sleep(0.05)
        assert len(seen) < 2400
    assert seen[0] == "static"
    assert seen == sorted(seen, reverse=True)  # it changed once
    hits = kb.search("delete file")
    assert (hits[0].title, hits.notes) == ("rm", ())
    assert worker().wait(60) == 0
    assert kb.refresh().improvement is None
    assert not kb.improve()


def test_small_ingest_embeds_summaries_before_returning(open_in, tmp_path):
    kb = open_in("background", foreground=600).create("drinks")
    assert kb.ingest(lines(tmp_path / "a.jsonl", 40)).improvement is None
    hits = kb.search("delete file")
    assert (hits[0].title, hits.notes) == ("rm", ())


@pytest.mark.slow
def test_killed_worker_keeps_embedded_summaries(open_in, tmp_path):
    kb = open_in("background").create("drinks")
    kb.ingest(lines(tmp_path / "a.jsonl", 200))
    first = kb.info().summaries_waiting
    until(lambda: kb.info().summaries_waiting < first)
    # no Ctrl-C reaches another group; niceness has no effect in another session
    pid = worker().pid
    assert (os.getpgid(pid), os.getsid(pid)) == (pid, os.getsid(0))
    os.kill(pid, signal.SIGKILL)
    worker().wait()
    left = kb.info().summaries_waiting
    assert 0 < left < first
    assert handle_of(kb).row().summary_embedder.startswith("static:")
    assert kb.search("delete file")[0].parts.summary > 0
    progress = []
    assert not kb.improve(on_progress=progress.append)
    summaries = [each for each in progress if each.stage == "summaries"]
    assert (summaries[-1].done, summaries[0].total) == (left, left)  # none twice
    assert handle_of(kb).row().summary_embedder.startswith("onnx:")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("much", "rests"),
    [(0.01, [30, 30]), (9, [30, 30, 30, 9, 30, 30, 30, 9])],
    ids=["many wait", "few wait"],
)
def test_worker_rests_while_documents_keep_coming(open_in, tmp_path, monkeypatch, much, rests):
    workspace = open_in("off")
    kb = workspace.create("drinks")
    now, slept, passes, once = 0, [], [], Improving.once

    def sleep(seconds):
        nonlocal now
        now += seconds
        slept.append(seconds)

    monkeypatch.setattr(improver, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(improver, "_MUCH", much)

    def beside_others(self):
        nonlocal now
        once(self)
        now += 11  # seconds that the pass took
        passes.append(now)
        if len(passes) < 3:  # as many documents as before
            kb.ingest(lines(tmp_path / f"{len(passes)}.jsonl", MANY, MANY * len(passes)))

    monkeypatch.setattr(Improving, "once", beside_others)
    kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    working = Thread(target=improver.main, args=(str(workspace.path),))
    working.start()
    working.join(120)
    assert slept == rests
    assert not kb.info().waiting


@pytest.mark.slow
def test_waiting_improve_shows_progress_of_another_process(open_in, tmp_path):
    workspace = open_in("off")
    kb = workspace.create("drinks")
    left = kb.ingest(lines(tmp_path / "a.jsonl", 150)).improvement
    assert not left.running
    command = [sys.executable, "-c", NEW_LOOK, str(workspace.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        until(lambda: kb.improve(stop=lambda: True).running)
        progress = []
        assert not kb.improve(on_progress=progress.append)
        assert any(each.message == "in the background" for each in progress)
        assert other.communicate(timeout=60)[0] == "0 0\n"


@pytest.mark.slow
def test_documents_change_during_improvement(open_in, tmp_path):
    workspace = open_in("background")
    kb, deleted = workspace.create("drinks"), workspace.create("gone")
    deleted.ingest(lines(tmp_path / "b.jsonl", 40, 1000))
    kb.ingest(lines(tmp_path / "a.jsonl", 100))
    kb.documents.delete("tea:3")
    kb.add("Tea 4", "Is not what it was, which is told in a sentence of its own.", source="tea:4")
    kb.add("Late", "Comes when all others have come, in a sentence of its own.")
    workspace.delete("gone")
    assert not kb.improve()
    for process in processes._outliving[-2:]:
        assert process.wait(60) == 0
    assert kb.search("who arrives last")[0].title == "Late"
    row = handle_of(kb).row()
    snapshot = kb._stores.snapshots.renew(kb.id)
    assert snapshot.state.summary_embedder == row.summary_embedder
    present = snapshot.summary_scores(lambda vectors: (vectors != 0).any(axis=1).astype("f4"))
    assert present.sum() == kb.info().documents == 101
    with pytest.raises(NotFoundError, match="was deleted"):
        deleted.improve()


def test_additions_start_one_worker(open_in, tmp_path):
    kb = open_in("background").create("drinks")
    before = [*processes._outliving]
    kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    for number in range(5):  # faster than the worker starts
        kb.add(f"Tea {number}", "Is added while the worker starts, in a sentence of its own.")
    assert len([each for each in processes._outliving if each not in before]) == 1


def test_no_worker_starts_if_switched_off(open_in, tmp_path):
    kb = open_in("off").create("drinks")
    before = list(processes._outliving)
    report = kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    assert not report.improvement.running
    assert str(report.improvement).startswith(f"{report.improvement.summaries} summaries, about ")
    assert processes._outliving == before
    assert "summaries" in kb._repr_html_()
    assert not kb.improve()
    assert "waiting" not in kb._repr_html_()


def test_chunks_of_a_model_are_searchable_at_once(open_in, tmp_path, monkeypatch):
    monkeypatch.setattr(MiniLmEmbedder, "batch_size", 20)
    spec = KnowledgeBaseSpec(embedding=MINILM, annotation="none")
    kb = open_in("off").create("drinks", spec=spec)
    left = kb.ingest(lines(tmp_path / "a.jsonl", MANY)).improvement
    assert left.chunks == kb.info().chunks == kb.info().chunks_waiting > MANY
    assert kb.info().embedder.startswith("static:")
    assert kb.spec.embedding == MINILM
    assert kb.search("kettle 7")[0].title == "Tea 7"
    calls = iter(range(100))
    left = kb.improve(stop=lambda: next(calls) > 6)
    assert not left.summaries
    assert 0 < left.chunks < MANY * 2 + 1
    assert kb.info().embedder.startswith("static:")
    progress = []
    assert not kb.improve(on_progress=progress.append)
    assert next(each.total for each in progress if each.stage == "embed") == left.chunks
    assert kb.info().embedder.startswith("onnx:minilm:")
    assert kb.info().pending == 0
    assert kb.search("kettle 7")[0].title == "Tea 7"
    assert kb.spec.retrieval.dense_weight == 0.6
    assert kb.refresh().chunks_embedded == 0
    kb.add("Late", "Comes when all others have come.")  # a few are embedded at once
    assert kb.info().chunks_waiting == 0


@pytest.mark.slow
def test_changing_the_embedder_in_the_background(open_in, tmp_path):
    kb = open_in("background").create("drinks")
    kb.ingest(lines(tmp_path / "a.jsonl", 5))
    before = kb.info()
    estimated = kb.improve(embedding="minilm", estimate=True)
    assert (estimated.summaries, estimated.chunks) == (0, before.chunks)
    assert estimated.seconds > 0
    assert estimated.megabytes == pytest.approx(before.chunks * 384 * 4e-6, abs=0.1)
    assert kb.info() == before
    left = kb.improve(embedding="minilm", background=True)
    assert left.running
    assert kb.search("kettle 3")[0].title == "Tea 3"
    until(lambda: kb.info().embedder.startswith("onnx:"))
    assert kb.search("kettle 3")[0].title == "Tea 3"
    assert (kb.spec.embedding, kb.spec.retrieval.dense_weight) == (MINILM, 0.6)
    assert worker().wait(60) == 0
    with pytest.raises(ConfigError, match="leave background out"):
        kb.improve(embedding="static", background=True)
    assert not kb.improve(embedding="static")
    assert kb.info().embedder.startswith("static:")
    assert kb.spec.retrieval.dense_weight == 0.35
    with pytest.raises(EmbedderError, match="is not a known model"):
        kb.improve(embedding="maxilm")
    with pytest.raises(ConfigError, match="choose auto, static, minilm or"):
        kb.improve(embedding="../model")


def test_build_and_export_embed_everything(open_in, tmp_path):
    lines(tmp_path / "a.jsonl", MANY)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("name: drinks\nsources:\n  - {type: jsonl, path: a.jsonl}\n")
    workspace = open_in("background")
    before = list(processes._outliving)
    kbkit.build(load_recipe(recipe), workspace, site=False)
    assert workspace["drinks"].info().summaries_waiting == 0
    assert processes._outliving == before
    other = open_in("off").create("others")
    other.ingest(lines(tmp_path / "b.jsonl", MANY))
    assert other.info().summaries_waiting
    other.export(folder=tmp_path / "site", build=False)
    assert other.info().summaries_waiting == 0


def test_command_line_shows_remaining_work(tmp_path, monkeypatch, run_kbkit):
    monkeypatch.setenv("KBKIT_IMPROVE", "off")
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "kb"))
    path = lines(tmp_path / "a.jsonl", MANY).path

    def run(*words):
        outcome = run_kbkit(*words)
        assert outcome.code == 0
        return outcome

    output = run("new", "drinks", "--jsonl", path).err
    assert "left to do: 37 summaries, about " in output
    assert "`kbkit improve drinks`" in output
    assert "37 summaries" in run("show", "drinks").out
    output = run("improve", "drinks", "--estimate", "--embedding", "minilm").err
    assert "37 summaries and " in output
    assert "MB" in output
    assert run("improve", "drinks").err == "left to do: nothing\n"
    assert "waiting" not in run("show", "drinks").out
    assert json.loads(run("improve", "drinks", "--json").out)["summaries"] == 0


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
@pytest.mark.soak
def test_interrupted_improve_keeps_its_progress(open_in, tmp_path):
    workspace = open_in("off")
    kb = workspace.create("drinks")
    first = kb.ingest(lines(tmp_path / "a.jsonl", 250)).improvement.summaries
    command = [sys.executable, "-c", NEW_LOOK, str(workspace.path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        until(lambda: kb.info().summaries_waiting < first)
        other.send_signal(signal.SIGINT)
        other.communicate(timeout=60)
    left = kb.info().summaries_waiting
    assert 0 < left < first
    assert kb.search("delete file")[0].parts.summary > 0
    assert not kb.improve()


def test_evaluation_notes_missing_embeddings(open_in, tmp_path):
    kb = open_in("off").create("drinks")
    kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    left = kb.info().summaries_waiting
    questions = [kbkit.Question(question="remove entries of a directory", relevant=["rm"])]
    report = kb.feedback.evaluate(questions)
    assert f"{left} summaries" in report.notes[0]
    assert "kbkit improve drinks" in report.notes[0]
    assert report.to_dict()["notes"] == list(report.notes)
    assert f"{left} summaries" in report._repr_html_()
    complete = kb.feedback.evaluate(questions, wait=True, against=report)
    assert kb.info().summaries_waiting == 0
    assert complete.notes == ()
    assert complete.against.notes == report.notes


@pytest.mark.slow
def test_eval_and_tune_commands_note_or_await_missing_embeddings(open_in, tmp_path, run_kbkit):
    kb = open_in("off").create("drinks")
    kb.ingest(lines(tmp_path / "a.jsonl", MANY))
    questions = tmp_path / "asked.tsv"
    questions.write_text("".join(f"remove entries of directory {n}\trm\n" for n in range(10)))

    def errors(task, *more):
        command = ["--workspace", tmp_path / "kb", task, "drinks", "--questions", questions, *more]
        outcome = run_kbkit(*command)
        assert outcome.code == 0
        return " ".join(outcome.err.split())

    assert "has still to embed" in errors("eval")
    assert "has still to embed" in errors("tune")
    assert "still to embed" not in errors("tune", "--wait")
    assert "still to embed" not in errors("eval", "--wait")
    assert kb.info().summaries_waiting == 0
