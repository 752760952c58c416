"""Settings from the environment and from files."""

import os
from pathlib import Path

import pytest

from kbkit.errors import ConfigError
from kbkit.runtime.config import DEFAULT_USER_AGENT, Settings, setting_values, unknown_variables


def test_default_settings():
    settings = Settings.load({})
    assert settings == Settings(Path("kb"), DEFAULT_USER_AGENT, 30.0, "anonymous")


def test_every_setting_is_read():
    settings = Settings.load(
        {
            "KBKIT_WORKSPACE": "/data/kb",
            "KBKIT_USER_AGENT": "mine/1",
            "KBKIT_TIMEOUT": "2.5",
            "KBKIT_RATER": "ann",
            "KBKIT_PANEL_TOKEN": "secret-of-mine",
            "KBKIT_DATABASE_URL": "postgresql://ann:secret@db/kb",
            "KBKIT_PGVECTOR": "0",
            "KBKIT_CHROMA_URL": "https://secret.example",
            "KBKIT_CHROMA_TOKEN": "secret",
            "KBKIT_TOP_K": "7",
            "KBKIT_MAX_ENTITIES": "0",
            "KBKIT_MAX_ENTRIES": "1000",
            "USER": "root",
        }
    )
    assert settings == Settings(
        Path("/data/kb"),
        "mine/1",
        2.5,
        "ann",
        top_k=7,
        max_entities=0,
        max_entries=1000,
        panel_token="secret-of-mine",
        database_url="postgresql://ann:secret@db/kb",
        pgvector=False,
        chroma_url="https://secret.example",
        chroma_token="secret",
    )
    assert "secret" not in repr(settings)


def test_an_empty_variable_counts_as_unset():
    names = ("KBKIT_WORKSPACE", "KBKIT_USER_AGENT", "KBKIT_TIMEOUT", "KBKIT_RATER", "USER")
    assert Settings.load(dict.fromkeys(names, "")) == Settings.load({})


def test_settings_are_the_same_in_another_process():
    for given in ({}, {"KBKIT_PGVECTOR": "0", "KBKIT_AUTO_LEARN": "/t", "KBKIT_TIMEOUT": "0.5"}):
        settings = Settings.load(given)
        assert Settings.load(settings.variables()) == settings


@pytest.mark.parametrize("name", ["USER", "USERNAME"])
def test_login_name_is_the_default_rater(name):
    assert Settings.load({name: "bob"}).rater == "bob"


def test_environment_is_read_at_each_load(monkeypatch):
    monkeypatch.setenv("KBKIT_WORKSPACE", "first")
    assert Settings.load().workspace == Path("first")
    monkeypatch.setenv("KBKIT_WORKSPACE", "second")
    assert Settings.load().workspace == Path("second")


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e300", "30s", "1,5"])
def test_invalid_timeout_is_refused(text):
    with pytest.raises(ConfigError, match=f"KBKIT_TIMEOUT={text}: must be"):
        Settings.load({"KBKIT_TIMEOUT": text})


@pytest.mark.parametrize("text", ["0", "-1", "2.5", "1001", "many"])
def test_invalid_number_of_passages_is_refused(text):
    with pytest.raises(ConfigError, match=f"KBKIT_TOP_K={text}: must be"):
        Settings.load({"KBKIT_TOP_K": text})


def project(folder, text, name="kbkit.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "head"), [("kbkit.toml", ""), ("pyproject.toml", "[tool.kbkit]\n")]
)
def test_project_file_is_read_from_folders_inside(tmp_path, name, head):
    (tmp_path / ".git").mkdir()
    inside = tmp_path / "docs" / "guide"
    inside.mkdir(parents=True)
    path = project(tmp_path, f'{head}workspace = "data"\ntimeout = 5\nimprove = "off"\n', name)
    settings = Settings.load({"KBKIT_TIMEOUT": "7"}, folder=inside)
    assert (settings.workspace, settings.timeout) == (tmp_path / "data", 7.0)
    assert settings.improve == "off"
    found = {each.name: each.origin for each in setting_values({"USER": "bob"}, folder=inside)}
    assert (found["timeout"], found["rater"]) == (str(path), "USER")
    assert found["crawl_provider"] == "default"
    project(tmp_path, 'rater = "ann"\n', "kbkit.toml")
    assert Settings.load({"USER": "bob"}, folder=inside).rater == "ann"


def test_search_for_a_project_file_ends_at_the_repository(tmp_path):
    project(tmp_path, "timeout = 5\n")
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "pyproject.toml").write_text("[tool.other]\nkbkit = 1\n")
    assert Settings.load({}, folder=repository).timeout == 30
    assert Settings.load({}, folder=tmp_path).timeout == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timeot = 3", "kbkit.toml: timeot: unknown setting; did you mean 'timeout'"),
        ('improve = "wiat"', "kbkit.toml: improve=wiat: must be 'background', 'wait' or"),
        ("timeout = -1", "kbkit.toml: timeout=-1: must be greater"),
        ("timeout = [1]", "give a text or a number"),
        ('browser = "./evil"', "set KBKIT_BROWSER in the environment"),
        ('panel_token = "x"', "set KBKIT_PANEL_TOKEN in the environment"),
        ('database_url = "x"', "set KBKIT_DATABASE_URL in the environment"),
        ('chroma_token = "x"', "set KBKIT_CHROMA_TOKEN in the environment"),
        ("timeout", "kbkit.toml: cannot be read as TOML"),
    ],
)
def test_invalid_project_file_is_refused(tmp_path, text, message):
    project(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        Settings.load({"KBKIT_IMPROVE": "off"}, folder=tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.getuid(), reason="needs a file of another user")
def test_project_file_of_another_user_is_ignored(tmp_path):
    path = project(tmp_path, "timeout = 5\n")
    os.chown(path, 12345, 12345)
    assert Settings.load({}, folder=tmp_path).timeout == 30


def test_unknown_variables_are_named():
    (problem,) = unknown_variables({"KBKIT_TIMEOT": "1", "KBKIT_TIMEOUT": "1", "HOME": "x"})
    assert problem == "KBKIT_TIMEOT: unknown setting; did you mean 'KBKIT_TIMEOUT'?"
