"""The command line: parses arguments, calls a workspace, prints results.

Exit codes: 0 done; 1 an error that the message explains; 2 wrong usage; 3 done, but a source gave
nothing at all; 4 an evaluation below its floor; 130 interrupted.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, NoReturn

from kbkit.cli.app import EXIT_BELOW_FLOOR, EXIT_ERROR, EXIT_NOTHING_READ, app
from kbkit.cli.terminal import complain, to_options
from kbkit.errors import KbkitError

__all__ = ["EXIT_BELOW_FLOOR", "EXIT_ERROR", "EXIT_NOTHING_READ", "app", "main"]
_GC_THRESHOLD = 200_000
"""More objects than a search allocates."""


def main() -> NoReturn:
    """Run the command line; an error becomes one clear message."""
    with _late_garbage_collection():
        _run()


@contextmanager
def _late_garbage_collection() -> Iterator[None]:
    thresholds = gc.get_threshold()

    def restore(*_: Any) -> None:
        if restore in gc.callbacks:  # once: an interrupt during a callback is lost
            gc.callbacks.remove(restore)
            gc.set_threshold(*thresholds)

    gc.set_threshold(_GC_THRESHOLD, *thresholds[1:])
    gc.callbacks.append(restore)  # at the first collection
    try:
        yield
    finally:
        restore()
        gc.freeze()


def _run() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # any text must be printable
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KbkitError as error:
        complain(f"kbkit: {to_options(str(error))}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of the pipe ended, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except OSError as error:  # such as a full disk
        complain(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    sys.exit(0)
