"""Entries: reusable solutions in folders, voted on, found again, learned from tasks."""
