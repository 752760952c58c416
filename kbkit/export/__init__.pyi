from kbkit.export.facts import Facts as Facts
from kbkit.export.mkdocs.build import build_site as build_site
from kbkit.export.mkdocs.build import find_site as find_site
from kbkit.export.mkdocs.build import serve_site as serve_site
from kbkit.export.mkdocs.build import write_project as write_project
from kbkit.export.mkdocs.build import write_standalone as write_standalone
from kbkit.export.pages.writer import export_pages as export_pages
from kbkit.models import ExportReport as ExportReport
