"""Sources that read on this machine's disk."""
