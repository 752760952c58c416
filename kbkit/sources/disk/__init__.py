"""Sources on this machine's disk."""
