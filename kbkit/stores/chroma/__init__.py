"""Chroma, the only place that imports chromadb."""
