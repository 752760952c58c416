"""The command line: parses arguments, calls a workspace, prints results.

Exit codes: 0 done; 1 an error that the message explains; 2 the command was used wrongly; 3 the work
was done, but some source gave nothing at all; 4 an evaluation fell below its floor; 130
interrupted.
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
_LOADED = 200_000
"""More objects than a search allocates."""


def main() -> NoReturn:
    """Run the command line; an error becomes one clear message."""
    with _collected_late():
        _run()


@contextmanager
def _collected_late() -> Iterator[None]:
    usual = gc.get_threshold()

    def as_usual(*_: Any) -> None:
        if as_usual in gc.callbacks:  # once: an interrupt that comes while it runs is lost
            gc.callbacks.remove(as_usual)
            gc.set_threshold(*usual)

    gc.set_threshold(_LOADED, *usual[1:])
    gc.callbacks.append(as_usual)  # from its first look on
    try:
        yield
    finally:
        as_usual()
        gc.freeze()


def _run() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # no text of a page may end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KbkitError as error:
        complain(f"kbkit: {to_options(str(error))}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a full disk, say
        complain(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    sys.exit(0)
