"""The site, for Sphinx. `make docs` copies the sources together first: see scripts/docs."""

from rumormill import __version__

project = "rumormill"
copyright = "the rumormill authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["conf.py"]
nitpicky = True

# The pages are read on the forge too: its way to write formulas, and anchors that it makes.
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

# Set by the reader's own browser from a file of the site.
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "global"}}

html_theme = "furo"
html_title = f"rumormill {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Summaries are fetched page by page, which a browser refuses in a folder on a disk; the search itself works.
html_show_search_summary = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"


def setup(app):
    """The names of the public API, for links from other projects."""
    from scripts.docs.names import register

    app.connect("env-updated", register)
