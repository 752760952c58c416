"""Value objects that travel between the layers. Frozen, typed, free of third-party types."""

from kbkit.models.annotations import Annotation, EntityType, Frame, Name, Subject, SubjectKind
from kbkit.models.answers import Answer
from kbkit.models.context import Citation, Context, ContextPiece
from kbkit.models.documents import (
    Chunk,
    ChunkSpan,
    Document,
    DocumentInfo,
    DocumentState,
    DocumentType,
    Image,
    Json,
    Labels,
    PageRecord,
    SourceDocument,
    telling_types,
)
from kbkit.models.filters import Filters
from kbkit.models.graph import Entity, Gap, GapKind, MergeSuggestion, Relation, Step
from kbkit.models.hits import Hit, Hits, Mode, ScoreParts
from kbkit.models.licenses import License
from kbkit.models.reports import (
    Compaction,
    DeletedDocument,
    DeletedKnowledgeBase,
    Expansion,
    Improvement,
    IngestReport,
    KnowledgeBaseInfo,
    Problem,
    Progress,
    Rating,
    SourceInfo,
)
from kbkit.models.targets import Target, TargetKind
from kbkit.models.values import Value, schema, to_json

__all__ = [
    "Annotation",
    "Answer",
    "Chunk",
    "ChunkSpan",
    "Citation",
    "Compaction",
    "Context",
    "ContextPiece",
    "DeletedDocument",
    "DeletedKnowledgeBase",
    "Document",
    "DocumentInfo",
    "DocumentState",
    "DocumentType",
    "Entity",
    "EntityType",
    "Expansion",
    "Filters",
    "Frame",
    "Gap",
    "GapKind",
    "Hit",
    "Hits",
    "Image",
    "Improvement",
    "IngestReport",
    "Json",
    "KnowledgeBaseInfo",
    "Labels",
    "License",
    "MergeSuggestion",
    "Mode",
    "Name",
    "PageRecord",
    "Problem",
    "Progress",
    "Rating",
    "Relation",
    "ScoreParts",
    "SourceDocument",
    "SourceInfo",
    "Step",
    "Subject",
    "SubjectKind",
    "Target",
    "TargetKind",
    "Value",
    "schema",
    "telling_types",
    "to_json",
]
