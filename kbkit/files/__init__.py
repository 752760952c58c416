"""The knowledge filesystem: folders and files that agents and people write, searched at once."""
