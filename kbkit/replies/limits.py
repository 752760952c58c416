"""How short a reply may have to be; light, since it is read before anything else."""

from __future__ import annotations

LEAST_TOKENS = 400
"""Smallest budget of a reply: smaller ones hold no passage with its source."""
