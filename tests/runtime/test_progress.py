import json
import subprocess
import sys

import nbclient
import nbformat
import pytest

from kbkit.runtime.progress import progress_bar


def test_a_caller_s_own_callback_is_used_as_it_is():
    def mine(progress):
        pass

    with progress_bar(mine) as tell:
        assert tell is mine


def test_outside_a_notebook_nothing_is_shown():
    with progress_bar(None) as tell:
        assert tell is None


def test_in_a_kernel_a_bar_follows_the_stages():
    """A real IPython shell with the attribute that marks a kernel."""
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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "crawl" in done.stderr
    assert "index" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "left"), [("tell(Progress('evaluate', 7, 8))", set()), ("1 / 0", {"danger"})]
)
def test_a_bar_stays_red_only_where_the_work_failed(end, left):
    """In a real kernel, whose widgets tqdm draws with; what stopped early is no failure."""
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
    assert bars or not left, json.dumps(widgets)
    assert {bar["bar_style"] for bar in bars} - {""} == left
