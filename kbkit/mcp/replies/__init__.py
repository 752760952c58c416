"""Replies to agents: texts within a budget of tokens, with a cursor for the rest."""

from kbkit.lazy import lazy_names

_NAMES = {
    "passages": (
        "HITS_PER_PASSAGE context_reply document_reply index_reply next_address read_on "
        "search_reply"
    ),
    "reply": "Budget Reply read_cursor shortened write_cursor",
    "workspace": (
        "about_reply entry_reply file_reply folder_reply "
        "memory_reply problem_text relation_reply rows_reply added_reply collection_reply "
        "knowledge_bases_reply usage_text"
    ),
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
