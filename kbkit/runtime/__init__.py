"""Settings, processes, plugins, logs and language models: what all rooms run on."""
