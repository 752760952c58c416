"""The panel of the files of a workspace."""
