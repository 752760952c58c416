from pathlib import Path

import pytest

from kbkit.config import DEFAULT_USER_AGENT, Settings
from kbkit.errors import ConfigError


def test_an_empty_environment_gives_the_defaults():
    settings = Settings.from_environment({})
    assert settings == Settings(Path("kb"), DEFAULT_USER_AGENT, 30.0, "anonymous")


def test_every_setting_is_read():
    settings = Settings.from_environment(
        {
            "KBKIT_WORKSPACE": "/data/kb",
            "KBKIT_USER_AGENT": "mine/1",
            "KBKIT_TIMEOUT": "2.5",
            "KBKIT_RATER": "ann",
            "KBKIT_PANEL_TOKEN": "secret-of-mine",
            "USER": "root",
        }
    )
    assert settings == Settings(
        Path("/data/kb"), "mine/1", 2.5, "ann", panel_token="secret-of-mine"
    )
    assert "secret" not in repr(settings)


def test_an_empty_variable_counts_as_unset():
    names = ("KBKIT_WORKSPACE", "KBKIT_USER_AGENT", "KBKIT_TIMEOUT", "KBKIT_RATER", "USER")
    assert Settings.from_environment(dict.fromkeys(names, "")) == Settings.from_environment({})


@pytest.mark.parametrize("name", ["USER", "USERNAME"])
def test_the_login_name_rates(name):
    assert Settings.from_environment({name: "bob"}).rater == "bob"


def test_the_environment_is_read_when_asked(monkeypatch):
    monkeypatch.setenv("KBKIT_WORKSPACE", "first")
    assert Settings.from_environment().workspace == Path("first")
    monkeypatch.setenv("KBKIT_WORKSPACE", "second")
    assert Settings.from_environment().workspace == Path("second")


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e300", "30s", "1,5"])
def test_a_bad_timeout_says_how_to_mend_it(text):
    with pytest.raises(ConfigError, match=f"KBKIT_TIMEOUT={text}.*seconds"):
        Settings.from_environment({"KBKIT_TIMEOUT": text})
