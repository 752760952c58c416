"""The lower limit of a reply; light, since it is read first."""

from __future__ import annotations

MIN_TOKENS = 400
"""Smallest budget of a reply: smaller ones hold no passage with its source."""
