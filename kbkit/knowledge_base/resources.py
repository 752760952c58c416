"""What the knowledge bases of one workspace share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbkit.config import Settings
from kbkit.embedding.embedders import Embedders
from kbkit.engine import Engine
from kbkit.stores.stores import Stores


@dataclass(frozen=True, slots=True)
class Resources:
    """What the knowledge bases of one workspace share.

    Attributes:
        stores: What the workspace keeps.
        settings: Of the workspace.
        embedders: Those that are open.
        engine: Where ingests have their work done.
        attachments: Gives the files of a document, by its URI, for each knowledge base, by its id,
            whose documents have some.
    """

    stores: Stores
    settings: Settings
    embedders: Embedders
    engine: Engine
    attachments: Mapping[str, Callable[[str], Mapping[str, bytes]]] = field(default_factory=dict)
