"""Learning entries from folders of finished tasks."""

import os
import queue
import threading
import time

import pytest

import kbkit
from kbkit.entries.learning import find_credential
from kbkit.errors import ConflictError, EntryFormatError, FilesError, MissingPathError, SecretsError
from kbkit.runtime.config import Settings
from kbkit.workflows.builder import watch_files
from tests.entries.conftest import votes_of, write_files


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "task-7"
    write_files(
        folder / ".knowledge",
        {
            "skill.yaml": "# by the agent\ntitle: Parse access logs\ndescription: Counts requests "
            "in logs of nginx\ntags: [logs]\nmood: good\n",
            "prompt.md": "Use `code/run.py`.\n",
            "code/run.py": "print(1)\n",
            ".env": "PASSWORD=hunter2hunter2\n",
        },
    )
    return folder


def nothing_changed(entries):
    return not entries.path.exists() or list(entries.path.iterdir()) == []


def test_folder_becomes_an_entry(entries, task):
    entry = entries.learn(task, task_id="task 7")
    assert (entry.slug, entry.source, entry.origin_task_id) == (
        "parse-access-logs",
        "auto",
        "task 7",
    )
    assert [file.path for file in entry.files] == ["code/run.py"]  # without hidden ones
    text = (entries.path / entry.slug / "skill.yaml").read_text()
    assert text.startswith("# by the agent\n")
    assert "mood: good\n" in text
    assert entries.context("count requests").pieces[0].name == entry.slug
    assert entries.learn(task / ".knowledge", task_id="task 7") == entry  # no change


def test_learning_again_updates_and_keeps_votes(entries, task):
    entry = entries.learn(task)
    entries.rate(entry.slug, 5, rater="anna")
    entries.update(entry.slug, status="deprecated")
    write_files(
        task / ".knowledge",
        {
            "prompt.md": "Better.\n",
            "skill.yaml": "title: Parse access logs\nstatus: active\nrating:\n  average: 5\n"
            "  count: 9\n  votes: [{score: 5, timestamp: 2026-01-01, rater: itself}]\n",
            "Votes.jsonl": '{"score": 5, "timestamp": "2026-01-01", "rater": "itself"}\n',
        },
    )
    (task / ".knowledge/code/run.py").unlink()
    again = entries.learn(task, task_id="8")
    assert votes_of(again) == [(5, "anna")]
    assert (again.slug, again.id, again.created_at) == (entry.slug, entry.id, entry.created_at)
    assert (again.prompt, again.files, again.origin_task_id) == ("Better.\n", (), "8")
    assert again.status == "deprecated"
    # the replaced entry is in the trash
    assert entries.undelete(entry.slug, to="before").prompt == "Use `code/run.py`.\n"


def test_learning_again_finds_a_renamed_entry(entries, task):
    entry = entries.learn(task)
    entries.rename(entry.slug, to="logs")
    write_files(task / ".knowledge", {"prompt.md": "Better.\n"})
    assert (entries.learn(task).slug, entries.list().total) == ("logs", 1)


def test_entry_of_a_person_is_not_replaced(entries, task):
    entries.create("Parse access logs", prompt="Mine")
    with pytest.raises(ConflictError, match="a person wrote"):
        entries.learn(task)
    assert entries.read("parse-access-logs").prompt == "Mine"


KEYS = {
    "a private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "an access key of AWS": "AKIA" + "ABCDEFGHIJKLMNOP",
    "a secret key of AWS": 'aws_secret_access_key = "' + "a1B2" * 10 + '"',
    "a token of GitHub": "ghp_" + "a1" * 18,
    "a token of GitLab": "glpat-" + "a1" * 10,
    "a token of Slack": "xoxb-" + "123456789012-abc",
    "a key of a language model's service": "sk-proj-" + "a1" * 20,
    "a key of Google": "AIza" + "a1b2c" * 7,
    "a token of Hugging Face": "hf_" + "aB" * 17,
    "a signed token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM" + ".c2lnbmF0dXJl",
    "a password in an address": "postgres://app:hunter2" + "@db.example.org/x",
    "a password or a key": 'password = "' + "correct1horse2battery" + '"',
}


@pytest.mark.parametrize(("kind", "key"), KEYS.items(), ids=KEYS)
def test_credentials_are_refused_and_not_repeated(entries, task, kind, key):
    write_files(task / ".knowledge", {"code/run.py": f"import os\n\nx = 1  # {key}\n"})
    with pytest.raises(SecretsError, match=r"code/run\.py: line 3") as caught:
        entries.learn(task)
    assert kind in str(caught.value)
    assert key not in str(caught.value)
    assert nothing_changed(entries)


@pytest.mark.parametrize(
    "text",
    [
        'password = os.environ["APP_PASSWORD"]',
        'token = "<your token>"',
        'api_key: "${API_KEY}"',
        "postgres://user:password@localhost/db",
        "https://user:<password>@example.org/",
        "sk-learn and task-force; risk-based-approach",
        "A token_count of 4096 tokens, secret santa",
        "hash: d41d8cd98f00b204e9800998ecf8427e",
        "-----BEGIN CERTIFICATE-----",
        "https://example.org:8080/path@2",
    ],
)
def test_text_about_credentials_is_accepted(text):
    assert find_credential(text.encode()) is None


def test_invalid_folders_are_refused_and_nothing_changes(entries, task, tmp_path):
    folder = task / ".knowledge"

    def refused(error, match):
        with pytest.raises(error, match=match):
            entries.learn(task)
        assert nothing_changed(entries)

    (folder / "skill.yaml").write_text("title: a\ntags: [\n")
    refused(EntryFormatError, r"skill\.yaml: line 3, column 1")
    (folder / "skill.yaml").write_text("description: a\n")
    refused(EntryFormatError, "has no title")
    (folder / "skill.yaml").write_text("title: a\n")
    (folder / "code/link").symlink_to("/etc/passwd")
    refused(FilesError, "code/link: is a link")
    (folder / "code/link").unlink()
    for name, message in (("CON", "CON"), ("RUN.py", "only in capitals")):
        (folder / "code" / name).write_text("x")
        refused(FilesError, message)
        (folder / "code" / name).unlink()
    with (folder / "big").open("wb") as file:
        file.truncate(30_000_000)
    refused(EntryFormatError, "MB")
    (folder / "big").unlink()
    for number in range(501):
        (folder / f"code/{number}").touch()
    refused(EntryFormatError, "500 files")
    real = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(real)
    refused(FilesError, "link")
    folder.unlink()
    refused(MissingPathError, r"has no skill\.yaml")


def test_finished_tasks_are_learned_once(tmp_path, task, monkeypatch):
    tasks = tmp_path / "tasks"
    broken, busy = "task-8/.knowledge/skill.yaml", "busy/.knowledge/prompt.md"
    write_files(tasks, {broken: "title: [\n", busy: "not done"})
    task.rename(tasks / "task-7")
    settings = Settings.load({"KBKIT_AUTO_LEARN": str(tasks), "KBKIT_IMPROVE": "off"})
    with kbkit.Workspace(tmp_path / "ws", settings=settings) as ws:
        assert ws.entries.sync().added == ()  # tasks may still be writing
        for path in tasks.rglob("*"):
            os.utime(path, (time.time() - 60, time.time() - 60))
        report = ws.entries.sync()
        assert report.added == ("parse-access-logs",)
        assert [each.uri.endswith("task-8/.knowledge") for each in report.skipped] == [True]
        assert ws.entries.read("parse-access-logs").origin_task_id == "task-7"
        ws.entries.update("parse-access-logs", prompt="By a person\n")
        assert ws.entries.sync().updated == ()
        assert ws.entries.read("parse-access-logs").prompt == "By a person\n"


def test_nothing_is_learned_automatically_by_default(ws, task):
    assert ws.entries.sync().added == ()


class Agent:
    """A scripted agent, which acts on its prompt."""

    def __init__(self, ws, folder):
        self.ws, self.folder = ws, folder

    def do(self, task):
        prompt = f"{self.ws.entries.learning_prompt()}\n{self.ws.entries.context(task)}"
        self.folder.mkdir()
        for piece in self.ws.entries.context(task).pieces:
            assert piece.text in prompt
            entry = self.ws.entries.read(piece.name)
            with self.ws.entries.open(entry.slug, entry.code[0].path) as stream:
                return f"reused {entry.slug}: {stream.read().decode()}"
        assert "No entry fits" in prompt
        files = {
            "code/count.py": "print('rows')",
            "prompt.md": "Run code/count.py on the log.\n",
            "README.md": "For logs of web servers.\n",
            "skill.yaml": prompt.split("```yaml\n")[1].split("```", maxsplit=1)[0],
        }
        write_files(self.folder / ".knowledge", files)
        return "done afresh"


def test_agent_reuses_a_learned_entry(ws, tmp_path):
    first = Agent(ws, tmp_path / "task-1").do("Count the requests in these nginx access logs")
    assert first == "done afresh"
    entry = ws.entries.learn(tmp_path / "task-1", task_id="task-1")
    ws.entries.rate(entry.slug, 5, rater="person")
    second = Agent(ws, tmp_path / "task-2").do("How many requests does this nginx log have?")
    assert second == f"reused {entry.slug}: print('rows')"
    context = ws.context("how many requests does an nginx log have")
    assert [piece.name for piece in context.pieces if piece.kind == "entry"] == [entry.slug]
    assert "★★★★★" in context.text


@pytest.mark.slow
def test_watching_learns_finished_tasks(tmp_path, task):
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    settings = Settings.load({"KBKIT_AUTO_LEARN": str(tasks), "KBKIT_IMPROVE": "off"})
    stop, reports = threading.Event(), queue.Queue()
    with kbkit.Workspace(tmp_path / "ws", settings=settings) as ws:
        options = {"stop": stop, "on_sync": reports.put, "on_trouble": reports.put}
        watcher = threading.Thread(target=watch_files, args=(ws.entries,), kwargs=options)
        watcher.start()
        try:
            task.rename(tasks / "task-7")
            assert reports.get(timeout=200).added == ("parse-access-logs",)
            path = ws.entries.path / "parse-access-logs/prompt.md"
            path.write_text("By hand, with a wombat.\n")
            assert reports.get(timeout=200).updated == ("parse-access-logs",)
            assert ws.search("wombat").hits[0].uri == "parse-access-logs"
        finally:
            stop.set()
            watcher.join()
