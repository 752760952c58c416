"""Draft a recipe from a site, a folder, a package or an API description."""

from __future__ import annotations

from kbkit.workflows.drafts.draft import Draft, Exclusion, check_free, write_draft
from kbkit.workflows.drafts.looking import draft_recipe

__all__ = ["Draft", "Exclusion", "check_free", "draft_recipe", "write_draft"]
