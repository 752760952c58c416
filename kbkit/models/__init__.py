"""Value objects of all layers. Frozen, typed, free of third-party types."""

from kbkit.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
