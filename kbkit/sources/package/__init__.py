"""The source ``package``: the public API of installed Python packages."""
