"""The knowledge filesystem: folders and files of agents and people."""
