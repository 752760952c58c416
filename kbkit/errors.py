"""The exceptions of kbkit.

::

    KbkitError                    everything below
    ├── ConfigError               a setting, an option or an argument is wrong
    │   ├── ArgumentError         a method was called with arguments that it does not take
    │   ├── LocalOnlyError        a server was asked for what only a folder has (an
    │   │                         AttributeError, too)
    │   ├── ImpossibleError       arguments are right, and contradict each other or how things are
    │   │                         (a ConflictError, too)
    │   ├── RecipeError           a recipe file is wrong; names file, line and field
    │   ├── TrustError            a recipe asks for what its builder has to agree to
    │   └── MissingExtraError     what needs a package that is not installed
    ├── InvalidNameError          a knowledge base name is malformed
    ├── NotFoundError             a knowledge base, document, chunk or file is not there
    ├── ConflictError             a name is taken, or another process does the same work
    ├── WorkspaceError            the workspace folder cannot be used
    │   ├── WorkspaceVersionError it was made by a newer kbkit
    │   └── StoreUnreachableError the index of vectors cannot be reached; nothing is lost
    ├── BundleError               a bundle is none, not what it says, or not signed as asked
    ├── SourceError               a source cannot be read at all
    │   └── FetchError            one address cannot be fetched
    │       └── ForbiddenAddressError  the address is private, or robots.txt forbids it
    ├── ClusterError              the cluster that is to do the work cannot be used, or was lost
    ├── EmbedderError             an embedder cannot be loaded, or failed
    │   └── EmbedderUnreachableError  it is asked over a network, and did not answer
    ├── PostprocessorError        a postprocessor cannot be opened, or failed
    ├── LanguageModelError        a language model failed
    ├── NotebookError             a notebook cannot be written, or one of its cells failed
    ├── FilesError                something cannot be done in the knowledge filesystem
    │   ├── InvalidPathError      a name that cannot be one on every system
    │   │   └── PathOutsideError  the path leads out of the filesystem
    │   ├── MissingPathError      nothing is there (a NotFoundError, too)
    │   ├── IsFolderError         a folder is there, where a file is wanted
    │   ├── NotFolderError        a file is there, where a folder is wanted
    │   ├── PathExistsError       something is there already (a ConflictError, too)
    │   ├── VersionConflictError  another change came between (a ConflictError, too)
    │   ├── NotUniqueError        the text to replace occurs not once; says how often
    │   ├── NotTextError          the file is no text
    │   ├── ReadOnlyPathError     what lies there can only be read
    │   ├── EntryFormatError      an entry's folder is not as one has to be; names line and column
    │   └── SecretsError          a file holds what looks like a key or a password
    ├── ExportError               a site, or a file of documents or chunks, cannot be written
    └── ServerError               a server cannot be reached, or failed
        └── RefusedError          it refuses a request, whatever that asks for
            ├── TokenError        the token is missing, unknown, revoked or expired
            ├── ForbiddenError    the token, or who asks, may not do that
            ├── LimitError        the request is too large, too slow, or one of too many
            └── ReusedKeyError    an idempotency key was used for another request before

A message says what is wrong, where, and how to mend it. Interfaces turn errors into exit codes and
panels into a line of text; nobody but a developer should ever read a traceback.
"""

from __future__ import annotations


class KbkitError(Exception):
    """Base of every error that kbkit raises on purpose."""


class ConfigError(KbkitError):
    """A setting, an option or an argument has a value that cannot work."""


class ArgumentError(ConfigError, TypeError):
    """A method was called with wrong arguments; the message shows the right call."""


class LocalOnlyError(ConfigError, AttributeError):
    """An operation needs the workspace's folder, but the workspace is on a server."""


class RecipeError(ConfigError):
    """A recipe file is wrong.

    Attributes:
        problems: One line per problem: ``file:line: field: problem``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class TrustError(ConfigError):
    """A recipe needs more than the public web and its own folder, and nobody agreed.

    Attributes:
        demands: One line for each thing that it asks for.
    """

    def __init__(self, recipe: object, demands: list[str]) -> None:
        self.demands = demands
        asked = "\n".join(f"- {each}" for each in demands)
        super().__init__(
            f"{recipe}: asks for more than the public web and its own folder:\n{asked}\nIf you "
            "trust its author, give trust=True"
        )


class MissingExtraError(ConfigError):
    """A package that kbkit needs for this is not installed; the message has the command."""


class InvalidNameError(KbkitError):
    """A knowledge base name is not a slug."""


class NotFoundError(KbkitError):
    """A knowledge base, document, chunk or file does not exist."""


class ConflictError(KbkitError):
    """A name is taken, or another process is doing the same work right now."""


class ImpossibleError(ConfigError, ConflictError):
    """Valid arguments contradict each other or the current state."""


class WorkspaceError(KbkitError):
    """The workspace folder cannot be opened, read or written."""


class WorkspaceVersionError(WorkspaceError):
    """The workspace was made by a newer kbkit."""


class StoreUnreachableError(WorkspaceError):
    """The index of vectors cannot be reached: a server is away or refuses, or a disk is full.

    What the catalog holds stays.
    """


class BundleError(KbkitError):
    """A bundle cannot be read or written, is damaged, or lacks the required signature."""


class SourceError(KbkitError):
    """A source cannot be read at all; single pages that fail are reported, not raised."""


class FetchError(SourceError):
    """An address could not be fetched."""


class ForbiddenAddressError(FetchError):
    """An address that kbkit refuses to fetch: private by default, or forbidden by robots.txt."""


class ClusterError(KbkitError):
    """A cluster is unusable or was lost; stored results stay."""


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


class ServerError(KbkitError):
    """A kbkit server is unreachable, failed, or sent an invalid response."""


class RefusedError(ServerError):
    """A server refuses requests in general."""


class TokenError(RefusedError):
    """A server needs a token, and it is missing, unknown, revoked or expired."""


class ForbiddenError(RefusedError):
    """The token or the origin of the request does not allow the operation.

    Attributes:
        scope: Missing scope; ``""`` if another reason.
    """

    scope = ""

    def __init__(self, message: str, scope: str = "") -> None:
        if scope:
            self.scope = scope
        super().__init__(message)


class LimitError(RefusedError):
    """A request is too large, takes too long, or is one of too many.

    Attributes:
        retry_after: Seconds until a retry; 0 if a retry would not help.
    """

    def __init__(self, message: str, retry_after: int = 0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class ReusedKeyError(RefusedError):
    """An ``Idempotency-Key`` was used for another request before."""


class FilesError(KbkitError):
    """An operation on files failed (`Workspace.files`)."""


class InvalidPathError(FilesError):
    """A path has a name that cannot be one on every system."""


class PathOutsideError(InvalidPathError):
    """A path leads out of the filesystem: by ``..``, as an absolute path, or over a link."""


class MissingPathError(FilesError, NotFoundError):
    """There is nothing at a path."""


class IsFolderError(FilesError):
    """There is a folder where a file is wanted."""


class NotFolderError(FilesError):
    """There is a file where a folder is wanted."""


class PathExistsError(FilesError, ConflictError):
    """There is something at a path already."""


class VersionConflictError(FilesError, ConflictError):
    """A file, an entry or a document is not as it was when it was looked at."""


class NotUniqueError(FilesError):
    """A text to replace does not occur exactly once in a file.

    Attributes:
        count: Number of occurrences.
    """

    def __init__(self, message: str, count: int) -> None:
        self.count = count
        super().__init__(message)


class NotTextError(FilesError):
    """A file is no text in UTF-8."""


class ReadOnlyPathError(FilesError):
    """A path is read-only: it shows a knowledge base."""


class EntryFormatError(FilesError):
    """The folder of an entry, or of a skill, is not as it has to be.

    Attributes:
        line: Line in its YAML, from 1; 0 if unknown.
        column: From 1; 0 likewise.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


class SecretsError(FilesError):
    """A file to learn contains a likely key or password."""
