"""The routes, a module for each part of a workspace."""
