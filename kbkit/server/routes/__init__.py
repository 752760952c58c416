"""Routes, a module for each part of a workspace."""
