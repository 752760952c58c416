"""Entries: reusable solutions in folders, rated, looked up, and learned from tasks."""
