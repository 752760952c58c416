"""How a knowledge base works, as the catalog says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from kbkit.errors import WorkspaceVersionError
from kbkit.recipes import KnowledgeBaseSpec

if TYPE_CHECKING:
    from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow


def spec_of(row: KnowledgeBaseRow) -> KnowledgeBaseSpec:
    """The parts of a recipe that shape a knowledge base.

    Raises:
        WorkspaceVersionError: It has what this kbkit does not know.
    """
    try:
        return KnowledgeBaseSpec.model_validate(row.config)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise WorkspaceVersionError(
            f"{row.name}: its configuration cannot be followed ({place}: {first['msg']}), so a "
            "newer kbkit made it, or the catalog is damaged; upgrade kbkit, or restore the "
            "workspace from a backup"
        ) from error
