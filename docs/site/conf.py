"""How `make docs` builds the site, by Sphinx: the pages are the Markdown files that a forge shows, where they lie."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

project = "maskmill"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference_pages"]
# The sources are the checkout, so that the links between README.md, docs/ and deploy/ are those of the files.
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/decisions/*.md", "docs/*.ipynb", "deploy/**.md"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
exclude_patterns = [".*", "build", "demo", "dist", "maskmill", "pipelines", "tests", "training", "transforms"]

default_role = "code"  # what stands in a docstring between `…`
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_mock_imports = ["grain", "jax", "nvidia", "tensorflow", "torch"]

smartquotes = False  # they would make one dash of a flag's two

html_theme = "furo"
html_title = "maskmill"
html_additional_pages = {"index": "start.html"}
html_copy_source = False
html_css_files = ["site.css"]
html_show_search_summary = False  # it would ask a server for pages
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["static"]
templates_path = ["templates"]
