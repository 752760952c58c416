"""The panel of the entries of a workspace."""
