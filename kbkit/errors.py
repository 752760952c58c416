"""The exceptions of kbkit.

::

    KbkitError                    base class
    ├── ConfigError               a setting, an option or an argument is wrong
    │   ├── ArgumentError         a method was called with wrong arguments (also a TypeError)
    │   ├── LocalOnlyError        needs a local folder, not a server (also an AttributeError)
    │   ├── ImpossibleError       valid arguments contradict each other or the current state (also
    │   │                         a ConflictError)
    │   ├── RecipeError           a recipe file is wrong; names file, line and field
    │   ├── TrustError            a recipe needs permission
    │   └── MissingExtraError     a package is not installed
    ├── InvalidNameError          a knowledge base name is malformed
    ├── NotFoundError             a knowledge base, document, chunk or file does not exist
    ├── ConflictError             a name is taken, or another process does the same work
    ├── WorkspaceError            the workspace folder cannot be used
    │   ├── WorkspaceVersionError a newer kbkit created it
    │   └── StoreUnreachableError the vector index cannot be reached; nothing is lost
    ├── BundleError               a bundle is unreadable, damaged or not signed as required
    ├── SourceError               a source cannot be read at all
    │   └── FetchError            an address cannot be fetched
    │       └── ForbiddenAddressError  the address is private, or robots.txt forbids it
    ├── ClusterError              a cluster cannot be used, or was lost
    ├── EmbedderError             an embedder cannot be loaded, or failed
    │   └── EmbedderUnreachableError  a remote embedder did not answer
    ├── PostprocessorError        a postprocessor cannot be opened, or failed
    ├── LanguageModelError        a language model failed
    ├── NotebookError             a notebook cannot be written, or one of its cells failed
    ├── FilesError                an operation on files failed
    │   ├── InvalidPathError      a name is not valid on every system
    │   │   └── PathOutsideError  the path leads out of the filesystem
    │   ├── MissingPathError      the path does not exist (also a NotFoundError)
    │   ├── IsFolderError         the path is a folder, not a file
    │   ├── NotFolderError        the path is a file, not a folder
    │   ├── PathExistsError       the path exists (also a ConflictError)
    │   ├── VersionConflictError  the version changed meanwhile (also a ConflictError)
    │   ├── NotUniqueError        the text to replace does not occur exactly once
    │   ├── NotTextError          the file is not text
    │   ├── ReadOnlyPathError     the path is read-only
    │   ├── EntryFormatError      the folder of an entry is malformed; names line and column
    │   └── SecretsError          a file contains a likely key or password
    ├── ExportError               a site, or a file of documents or chunks, cannot be written
    └── ServerError               a server cannot be reached, or failed
        └── RefusedError          a server refuses the request
            ├── TokenError        the token is missing, unknown, revoked or expired
            ├── ForbiddenError    the token or the origin does not allow the operation
            ├── LimitError        the request is too large, too slow, or one of too many
            └── ReusedKeyError    an idempotency key was used for another request

A message says what is wrong, where, and how to fix it. Interfaces turn errors into exit codes and
panels into a line of text, so that users see no traceback.
"""


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
    """A recipe needs more than the public web and its own folder, without permission.

    Attributes:
        demands: One line for each permission that it needs.
    """

    def __init__(self, recipe: object, demands: list[str]) -> None:
        self.demands = demands
        listing = "\n".join(f"- {demand}" for demand in demands)
        super().__init__(
            f"{recipe}: asks for more than the public web and its own folder:\n{listing}\nIf you "
            "trust its author, give trust=True"
        )


class MissingExtraError(ConfigError):
    """A package that kbkit needs for this is not installed; the message contains the command."""


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
    """A newer kbkit created the workspace."""


class StoreUnreachableError(WorkspaceError):
    """The vector index cannot be reached, or its disk is full; the catalog is not affected."""


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
    """A language model failed."""


class NotebookError(KbkitError):
    """A notebook cannot be written, or one of its cells failed."""


class EmbedderUnreachableError(EmbedderError):
    """An embedder could not be reached; a retry may work."""


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
    """An ``Idempotency-Key`` was used for another request."""


class FilesError(KbkitError):
    """An operation on files failed (`Workspace.files`)."""


class InvalidPathError(FilesError):
    """A path has a name that is not valid on every system."""


class PathOutsideError(InvalidPathError):
    """A path leads out of the filesystem: by ``..``, as an absolute path, or over a link."""


class MissingPathError(FilesError, NotFoundError):
    """A path does not exist."""


class IsFolderError(FilesError):
    """A path is a folder where a file is needed."""


class NotFolderError(FilesError):
    """A path is a file where a folder is needed."""


class PathExistsError(FilesError, ConflictError):
    """A path exists already."""


class VersionConflictError(FilesError, ConflictError):
    """A file, entry, document, entity or relation does not have the expected version."""


class NotUniqueError(FilesError):
    """A text to replace does not occur exactly once in a file.

    Attributes:
        count: Number of occurrences.
    """

    def __init__(self, message: str, count: int) -> None:
        self.count = count
        super().__init__(message)


class NotTextError(FilesError):
    """A file is not UTF-8 text."""


class ReadOnlyPathError(FilesError):
    """A path is read-only: it shows a knowledge base."""


class EntryFormatError(FilesError):
    """The folder of an entry or a skill is malformed.

    Attributes:
        line: Line in its YAML, from 1; 0 if unknown.
        column: From 1; 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


class SecretsError(FilesError):
    """A file to learn contains a likely key or password."""
