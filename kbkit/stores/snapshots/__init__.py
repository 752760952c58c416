"""Snapshots: a version of a knowledge base as arrays."""
