"""Progress bars in notebooks."""

import json
import subprocess
import sys

import nbclient
import nbformat
import pytest

from kbkit.runtime.progress import ignore, progress_bar


def test_callback_of_the_caller_is_used():
    def mine(progress):
        pass

    with progress_bar(mine) as tell:
        assert tell is mine


def test_no_progress_bar_outside_a_notebook():
    with progress_bar(None) as tell:
        assert tell is ignore


def test_progress_bar_of_a_kernel_shows_stages():
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.kernel = object()
from kbkit.models import Progress
from kbkit.runtime.progress import progress_bar
with progress_bar(None) as tell:
    for n in range(3):
        tell(Progress("crawl", n, 10, "http://x/" + "y" * 100))
    tell(Progress("index", 5))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "crawl" in done.stderr
    assert "index" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "styles"), [("tell(Progress('evaluate', 7, 8))", set()), ("1 / 0", {"danger"})]
)
def test_progress_bar_is_red_only_after_a_failure(end, styles):
    code = f"""
from kbkit.models import Progress
from kbkit.runtime.progress import progress_bar
with progress_bar(None) as tell:
    tell(Progress("evaluate", 1, 8))
    {end}
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    widgets = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    bars = [each["state"] for each in widgets.values() if "FloatProgress" in each["model_name"]]
    assert bars or not styles, json.dumps(widgets)
    assert {bar["bar_style"] for bar in bars} - {""} == styles
