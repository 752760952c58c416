"""What the knowledge bases of one workspace share."""

from __future__ import annotations

from dataclasses import dataclass

from kbkit.config import Settings
from kbkit.embedding.embedders import Embedders
from kbkit.stores.stores import Stores


@dataclass(frozen=True, slots=True)
class Resources:
    """What the knowledge bases of one workspace share."""

    stores: Stores
    settings: Settings
    embedders: Embedders
