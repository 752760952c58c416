"""What only Chroma can do; the one room that imports chromadb."""
