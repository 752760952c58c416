"""The IPython extension: ``%load_ext kbkit`` adds ``%kb`` and ``%%kb``.

Commands return the objects of a workspace: ``hits = %kb search words`` gives `Hits`.
"""

from __future__ import annotations

import re
from argparse import REMAINDER
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import MagicArgumentParser

from kbkit.errors import KbkitError, NotFoundError
from kbkit.models import Hits, Mode, Rating
from kbkit.runtime.config import Settings
from kbkit.workspace import Workspace

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

_OPTIONS = ("-k", "-n", "-m")
_PARSER = MagicArgumentParser("%kb search", add_help=False)  # type: ignore[no-untyped-call]
_PARSER.add_argument("-k", dest="names", action="append", metavar="NAME")
_PARSER.add_argument("-n", dest="limit", type=int, metavar="NUMBER")
_PARSER.add_argument("-m", dest="mode", default=Mode.HYBRID.value, metavar="MODE")
_PARSER.add_argument("words", nargs=REMAINDER)
_AT_KB = re.compile(r"\s*(?:\w+\s*=\s*)?%{1,2}kb\s+(.*)")
_VARIABLE = "ws"
"""The variable with the workspace of a notebook."""


@magics_class
class KbMagics(Magics):
    """``%kb`` and ``%%kb``."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._variables = shell.user_ns
        self._opened: Workspace | None = None
        self._hits: Hits | None = None
        self._rated: Rating | None = None
        self._commands: dict[str, Callable[[str], object]] = {
            "list": lambda _: self._workspace(),
            "open": self._open,
            "search": self._search,
            "ask": self._ask,
            "rate": self._rate,
            "unrate": self._unrate,
        }

    @line_cell_magic
    def kb(self, line: str, cell: str | None = None) -> object:
        """Search knowledge bases, ask them, and rate results.

        ::

            %kb                        the knowledge bases of the workspace
            %kb open FOLDER            use another workspace (created if missing)
            %kb search [-k NAME] [-n 5] [-m hybrid|dense|lexical] WORDS
            %kb ask [-k NAME] [-n 5] QUESTION
            %kb rate RANK STARS [NOTE] rate a result of the last search, 1 to 5
            %kb unrate                 undo the last rating

        ``%%kb search`` and ``%%kb ask`` take their words from the cell. Commands return values:
        ``hits = %kb search words``. The workspace is that of ``%kb open``, else the variable
        ``ws``, else ``KBKIT_WORKSPACE`` or ``./kb``. ``ask`` answers with the llama-index model in
        ``Settings.llm``; without one it shows the passages.
        """
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(name or "list")
        if command is None:
            raise UsageError(
                f"%kb {name}: no such command; there are {', '.join(self._commands)}. "
                f"To search, write %kb search {line.strip()}"
            )
        if cell is not None:
            if name not in ("search", "ask"):
                raise UsageError("%%kb takes its words from the cell: %%kb search or %%kb ask")
            rest = f"{rest.strip()} {' '.join(cell.split())}"
        try:
            return command(rest.strip())
        except KbkitError as error:
            raise UsageError(str(error)) from None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @context_matcher()  # type: ignore[untyped-decorator]
    def complete(self, context: CompletionContext) -> SimpleMatcherResult:
        match = _AT_KB.match(context.line_with_cursor[: context.cursor_position])
        if match is None:
            return {"completions": []}
        *before, typed = match[1].split(" ")
        texts = [text for text in self._choices([*filter(None, before)], typed) if text != typed]
        return {
            "completions": [SimpleCompletion(text) for text in texts if text.startswith(typed)],
            "matched_fragment": typed,
            "suppress": bool(texts),  # no Python completions
            "ordered": True,
        }

    def _choices(self, before: list[str], typed: str) -> list[str]:
        if not before:
            return list(self._commands)
        if before[-1] == "-m":
            return [mode.value for mode in Mode]
        if before[-1] == "-k":
            return self._names()
        if before[0] in ("search", "ask") and typed.startswith("-"):
            return [*_OPTIONS]
        return []

    def _workspace(self) -> Workspace:
        if self._opened is not None:
            return self._opened
        workspace = self._variables.get(_VARIABLE)
        if isinstance(workspace, Workspace):
            return workspace
        folder = Settings.load().workspace
        if not folder.is_dir():
            raise NotFoundError(
                f"{folder}: there is no workspace here; name its folder with %kb open FOLDER"
            )
        self._opened = Workspace(folder)
        return self._opened

    def _names(self) -> list[str]:
        try:
            return list(self._workspace())
        except KbkitError:  # the tab key must not raise
            return []

    def _open(self, folder: str) -> Workspace:
        if not folder:
            raise UsageError("%kb open FOLDER: name the folder of a workspace")
        workspace = Workspace(Path(folder.strip("\"'")).expanduser())
        self.close()
        self._opened, self._hits, self._rated = workspace, None, None
        return workspace

    def _options(self, line: str) -> tuple[list[str] | None, int | None, str, str]:
        arguments = _PARSER.parse_args(line.split())
        words = arguments.words[arguments.words[:1] == ["--"] :]
        if not words:
            raise UsageError("the query is empty: add some words after the command")
        return arguments.names, arguments.limit, arguments.mode, " ".join(words)

    def _search(self, line: str) -> Hits:
        names, limit, mode, words = self._options(line)
        self._hits = self._workspace().search(
            words, kbs=names, limit=10 if limit is None else limit, mode=mode
        )
        return self._hits

    def _ask(self, line: str) -> object:
        names, limit, mode, words = self._options(line)
        if mode != Mode.HYBRID:
            raise UsageError("-m can only be used with search")
        answer = self._workspace().ask(words, kbs=names, limit=5 if limit is None else limit)
        self._hits = answer.hits
        return answer

    def _rate(self, line: str) -> None:
        rank, _, rest = line.partition(" ")
        stars, _, note = rest.strip().partition(" ")
        if not (rank.isdecimal() and stars.isdecimal()):
            raise UsageError("%kb rate RANK STARS: the place of a result, and 1 to 5 stars")
        hits = self._hits
        if hits is None or not 1 <= int(rank) <= len(hits):
            count = len(hits) if hits is not None else 0
            raise UsageError(f"%kb rate {rank}: the last search has {count} results")
        hit = hits[int(rank) - 1]
        self._rated = self._workspace()[hit.kb].rate(
            hit.chunk.id, int(stars), query=hits.query, note=note.strip()
        )
        print(f"{stars} of 5 for {hit.title or hit.uri!r}; %kb unrate undoes it")  # noqa: T201

    def _unrate(self, _: str) -> None:
        if self._rated is None:
            raise UsageError("%kb unrate: nothing was rated here")
        self._workspace()[self._rated.kb].ratings.delete(self._rated.id)
        self._rated = None
        print("undone")  # noqa: T201


def load(shell: InteractiveShell) -> None:
    magics = KbMagics(shell)
    shell.register_magics(magics)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(magics.complete)


def unload(shell: InteractiveShell) -> None:
    magics = shell.magics_manager.registry.pop("KbMagics", None)
    if isinstance(magics, KbMagics):
        magics.close()
        if shell.Completer is not None:
            shell.Completer.custom_matchers.remove(magics.complete)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("kb", None)
