"""Chroma; only this package imports chromadb."""
