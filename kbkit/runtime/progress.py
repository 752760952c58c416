"""Progress bars in notebooks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kbkit.models import Progress

OnProgress = Callable[[Progress], None]

_MAX_LENGTH = 60


def ignore(_progress: Progress) -> None:
    """Show no progress."""


@contextmanager
def progress_bar(on_progress: OnProgress | None) -> Iterator[OnProgress]:
    """Yield the given callback, or one that draws a tqdm bar in a notebook."""
    if on_progress is not None or not _in_kernel():
        yield on_progress or ignore
        return
    from tqdm.auto import tqdm

    with tqdm(unit="", leave=False) as bar:

        def notify(progress: Progress) -> None:
            bar.set_postfix_str(progress.message[-_MAX_LENGTH:], refresh=False)
            if bar.desc != f"{progress.stage}: ":
                bar.reset(progress.total)
                bar.set_description(progress.stage)
            bar.update(progress.done - bar.n)

        yield notify
        # a stage that ended early is not a failure, but tqdm would draw its bar in red
        bar.total = bar.n


def _in_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
