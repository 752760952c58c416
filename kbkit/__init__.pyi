from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from kbkit.client import connect as connect
from kbkit.errors import KbkitError as KbkitError
from kbkit.export.published_index import PublishedIndex as PublishedIndex
from kbkit.feedback.evaluation_report import Evaluation as Evaluation
from kbkit.feedback.judgements import Judgements as Judgements
from kbkit.knowledge_base import KnowledgeBase as KnowledgeBase
from kbkit.models import Answer as Answer
from kbkit.models import Chunk as Chunk
from kbkit.models import Document as Document
from kbkit.models import DocumentInfo as DocumentInfo
from kbkit.models import DocumentType as DocumentType
from kbkit.models import Expansion as Expansion
from kbkit.models import ExportReport as ExportReport
from kbkit.models import Filters as Filters
from kbkit.models import Hit as Hit
from kbkit.models import Hits as Hits
from kbkit.models import Improvement as Improvement
from kbkit.models import IngestReport as IngestReport
from kbkit.models import KnowledgeBaseInfo as KnowledgeBaseInfo
from kbkit.models import Mode as Mode
from kbkit.models import Rating as Rating
from kbkit.models import SourceInfo as SourceInfo
from kbkit.models import Target as Target
from kbkit.recipes import AutoEmbedding as AutoEmbedding
from kbkit.recipes import ChunkingSpec as ChunkingSpec
from kbkit.recipes import CrawlSource as CrawlSource
from kbkit.recipes import ExpandSpec as ExpandSpec
from kbkit.recipes import FilesSource as FilesSource
from kbkit.recipes import JsonlSource as JsonlSource
from kbkit.recipes import KnowledgeBaseSpec as KnowledgeBaseSpec
from kbkit.recipes import LearningSpec as LearningSpec
from kbkit.recipes import LlamaIndexEmbedding as LlamaIndexEmbedding
from kbkit.recipes import MirrorSource as MirrorSource
from kbkit.recipes import MultilingualEmbedding as MultilingualEmbedding
from kbkit.recipes import OnnxEmbedding as OnnxEmbedding
from kbkit.recipes import OpenApiSource as OpenApiSource
from kbkit.recipes import PackageSource as PackageSource
from kbkit.recipes import PageSource as PageSource
from kbkit.recipes import ParquetSource as ParquetSource
from kbkit.recipes import PluginEmbedding as PluginEmbedding
from kbkit.recipes import PluginSource as PluginSource
from kbkit.recipes import PostprocessorSpec as PostprocessorSpec
from kbkit.recipes import Question as Question
from kbkit.recipes import Recipe as Recipe
from kbkit.recipes import RetrievalSpec as RetrievalSpec
from kbkit.recipes import SiteSpec as SiteSpec
from kbkit.recipes import StaticEmbedding as StaticEmbedding
from kbkit.recipes import StorageSpec as StorageSpec
from kbkit.recipes import load_recipe as load_recipe
from kbkit.sources.fidelity_report import FidelityReport as FidelityReport
from kbkit.sources.fidelity_report import fidelity as fidelity
from kbkit.workflows.builder import BuildReport as BuildReport
from kbkit.workflows.builder import build as build
from kbkit.workflows.migration import migrate as migrate
from kbkit.workspace import Workspace as Workspace

__version__: str

def open(path: str | Path | None = None) -> Workspace: ...
def load_ipython_extension(shell: InteractiveShell) -> None: ...
def unload_ipython_extension(shell: InteractiveShell) -> None: ...
