"""The errors kbkit raises, one tree so that callers catch as much or as little as they want.

::

    KbkitError                    everything below
    ├── ConfigError               a setting, an option or an argument is wrong
    │   ├── ArgumentError         a method was called with arguments that it does not take
    │   ├── RecipeError           a recipe file is wrong; names file, line and field
    │   └── MissingExtraError     what needs an extra of kbkit that is not installed
    ├── InvalidNameError          a knowledge base name is malformed
    ├── NotFoundError             a knowledge base, document, chunk or file is not there
    ├── ConflictError             a name is taken, or another process does the same work
    ├── WorkspaceError            the workspace folder cannot be used
    │   └── WorkspaceVersionError it was made by a newer kbkit
    ├── SourceError               a source cannot be read at all
    │   └── FetchError            one address cannot be fetched
    │       └── ForbiddenAddressError  the address is private, or robots.txt forbids it
    ├── EmbedderError             an embedder cannot be loaded, or failed
    │   └── EmbedderUnreachableError  it is asked over a network, and did not answer
    ├── PostprocessorError        a postprocessor cannot be opened, or failed
    ├── LanguageModelError        a language model failed
    ├── NotebookError             a notebook cannot be written, or one of its cells failed
    └── ExportError               a site cannot be written or built

A message says what is wrong, where, and how to mend it. Interfaces turn errors into exit codes
and panels into a line of text; nobody but a developer should ever read a traceback.
"""

from __future__ import annotations


class KbkitError(Exception):
    """Base of every error that kbkit raises on purpose."""


class ConfigError(KbkitError):
    """A setting, an option or an argument has a value that cannot work."""


class ArgumentError(ConfigError, TypeError):
    """A method was called with arguments that it does not take; says how to call it."""


class RecipeError(ConfigError):
    """A recipe file is wrong.

    Attributes:
        problems: One line per problem, each ``file:line: field: what is wrong``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class MissingExtraError(ConfigError):
    """A package of one of kbkit's extras is not installed; the message has the command."""


class InvalidNameError(KbkitError):
    """A knowledge base name is not a slug."""


class NotFoundError(KbkitError):
    """A knowledge base, document, chunk or file does not exist."""


class ConflictError(KbkitError):
    """A name is taken, or another process is doing the same work right now."""


class WorkspaceError(KbkitError):
    """The workspace folder cannot be opened, read or written."""


class WorkspaceVersionError(WorkspaceError):
    """The workspace was made by a newer kbkit."""


class SourceError(KbkitError):
    """A source cannot be read at all; single pages that fail are reported, not raised."""


class FetchError(SourceError):
    """One address could not be fetched."""


class ForbiddenAddressError(FetchError):
    """An address that kbkit refuses to fetch: private by default, or forbidden by robots.txt."""


class EmbedderError(KbkitError):
    """An embedder cannot be loaded, or failed to embed."""


class PostprocessorError(KbkitError):
    """A postprocessor that a recipe names cannot be opened, or failed."""


class LanguageModelError(KbkitError):
    """A language model that was asked to answer failed."""


class NotebookError(KbkitError):
    """A notebook cannot be written, or one of its cells failed."""


class EmbedderUnreachableError(EmbedderError):
    """An embedder could not be reached; the same input may do later."""


class ExportError(KbkitError):
    """A site cannot be written or built."""
