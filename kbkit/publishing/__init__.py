"""From a knowledge base to its site, and the published index searched in Python."""
