"""The status line of panels: outcomes stay during updates."""

import threading
from pathlib import Path

import pytest

from kbkit.errors import ConfigError
from kbkit.panels.panel import Panel


@pytest.fixture
def panel(tmp_path: Path) -> Panel:
    return Panel(str(tmp_path), "test")


def test_unasked_update_keeps_the_outcome(panel: Panel):
    panel.say("Three files")
    panel.announce("Saved: tea")
    with panel.update_quietly():
        panel.say("Four files")
        assert "Saved: tea" in panel.status_line.value
        assert "Four files" not in panel.status_line.value
        for news in ("tea is gone", "milk is gone"):
            panel.announce(news)
            assert "Saved: tea" in panel.status_line.value
            assert news in panel.status_line.value
        assert "tea is gone" not in panel.status_line.value
        panel.fail(ConfigError("no disk"))
        assert "Saved: tea" in panel.status_line.value
        assert "no disk" in panel.status_line.value
    panel.say("Four files")
    assert "Saved: tea" not in panel.status_line.value


def test_unasked_update_keeps_the_error(panel: Panel):
    first = ConfigError("no such file")
    panel.fail(first)
    shown = panel.status_line.value
    with panel.update_quietly():
        panel.say("Four files")
        panel.fail(ConfigError("no disk"))
    assert panel.error is first
    assert panel.status_line.value == shown


def test_action_is_shown_during_an_update_in_another_thread(panel: Panel):
    panel.announce("Saved: tea")
    began, ends = threading.Event(), threading.Event()

    def update() -> None:
        with panel.update_quietly():
            began.set()
            ends.wait()

    thread = threading.Thread(target=update)
    thread.start()
    began.wait()
    panel.say("Three files found")
    ends.set()
    thread.join()
    assert "Three files found" in panel.status_line.value
