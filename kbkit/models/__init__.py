"""Value objects of all layers. Frozen, typed, free of third-party types."""

from kbkit.extras import lazy_names

_NAMES = {
    "annotations": (
        "About AnnotatedChunk Annotation ChunkSummary EntityType StatementType Name RelatedChunk "
        "SpeakingChunk SpeakingDocument StatedRelation Subject SubjectKind"
    ),
    "documents": (
        "Chunk ChunkSpan Document DocumentInfo DocumentPart DocumentState DocumentType Image "
        "Json Labels PageRecord SourceDocument telling_types"
    ),
    "files": (
        "DeletedFile Entry EntryFile EntryInfo EntryPage EntryRating EntrySource EntryStatus "
        "EntrySyncReport FileInfo FileKind FileLink FileTree SyncReport Vote"
    ),
    "graph": (
        "Entity Gap GapKind GraphEdit GraphLayout LayoutEdge LayoutNode MergeSuggestion "
        "Relation Step"
    ),
    "hits": "Hit Hits Mode ScoreParts",
    "ingest_report": (
        "ImportReport IngestReport Job JobError JobProgress JobState Progress TokenInfo"
    ),
    "licenses": "License",
    "reports": (
        "AnnotationReport BundleInfo Compaction DeletedDocument "
        "DeletedKnowledgeBase Expansion ExportReport Improvement KnowledgeBaseInfo "
        "MigratedTable Migration Rating RatingTotal Restoration RestoredKnowledgeBase "
        "SiteArchive SourceInfo"
    ),
    "searches": "Answer Citation Context ContextPiece Filters",
    "values": "Finding Health Problem Run Target TargetKind Value from_dict schema to_json",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
