"""kbkit's splitter as a llama-index node parser."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document, NodeRelationship, TextNode

from kbkit.ingest.spans import cut, strategy_for
from kbkit.models import DocumentType
from kbkit.text.markdown.structure import outline


class SpanParser(NodeParser):
    """Cuts Markdown into nodes with exact ``start_char_idx`` and ``end_char_idx``.

    The metadata of nodes contain ``heading_path``, ``anchor`` and ``page``. The strategy ``auto``
    considers a document's text, and ``document_type`` and ``format`` in its metadata.
    """

    strategy: str = "auto"
    size: int = 1000
    overlap: int = 0

    @classmethod
    def class_name(cls) -> str:
        return "KbkitSpanParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        result: list[BaseNode] = []
        for node in nodes:
            source = node.as_related_node_info()
            content = node.get_content()
            structure = outline(content)
            auto, strategy = self.strategy == "auto", self.strategy
            if auto:
                kind = node.metadata.get("document_type")
                type_ = DocumentType(kind) if kind in set(DocumentType) else DocumentType.OTHER
                strategy = strategy_for(structure, type_, str(node.metadata.get("format", "")))
            result += [
                TextNode(
                    id_=f"{node.node_id}:{span.start}",
                    text=content[span.start : span.end],
                    start_char_idx=span.start,
                    end_char_idx=span.end,
                    metadata={
                        "heading_path": list(span.heading_path),
                        "anchor": span.anchor,
                        "page": span.page,
                    },
                    relationships={NodeRelationship.SOURCE: source},
                )
                for span in cut(content, structure, strategy, self.size, self.overlap, lines=auto)
            ]
        return result

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        # the base class searches offsets by text, and finds repeated texts too early
        texts = (node for node in nodes if isinstance(node, TextNode))
        exact = [(text, text.start_char_idx, text.end_char_idx) for text in texts]
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for node, start, end in exact:
            if node.start_char_idx != start:
                node.start_char_idx, node.end_char_idx = start, end
        return nodes
