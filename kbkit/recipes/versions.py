"""Which version a spec is of: whoever changes one says which it was that they saw."""

from __future__ import annotations

import hashlib

from kbkit.errors import VersionConflictError
from kbkit.recipes.base import Spec


class VersionedSpec(Spec):
    """A spec that tells its version."""

    @property
    def version(self) -> str:
        """Another one as soon as anything of it is; ``if_match`` takes it."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=16).hexdigest()

    def check_version(self, expected: str | None) -> None:
        """Whether it is the one that somebody saw.

        Args:
            expected: The version of that; ``None`` for any.

        Raises:
            VersionConflictError: It is not.
        """
        if expected is not None and expected != self.version:
            raise VersionConflictError(
                f"the spec was changed since it was read; read it again, and change that "
                f"(if_match={expected[:80]!r}, and its version is {self.version!r} now)"
            )
