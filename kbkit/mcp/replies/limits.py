"""The lower limit of a reply, without heavy imports."""

from __future__ import annotations

MIN_TOKENS = 400
"""Smallest budget of a reply that holds a passage with its source."""
