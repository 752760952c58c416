"""Settings, processes, plugins, logs and language models."""
