"""How Sphinx builds the documentation; nothing here reaches for the network."""

import re

from likely._version import __version__

project = "likely"
author = "The likely developers"
copyright = "2026, The likely developers"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence"]  # formulas are plain Unicode: nothing to fetch, nothing to wait for
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "pydata_sphinx_theme"
html_title = f"likely {release}"
html_static_path = ["_static"]
html_css_files = ["likely.css"]
html_theme_options = {
    "header_links_before_dropdown": 1,  # titles are long: two would take a second line
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
}
html_show_sourcelink = False
html_sidebars = {"**": []}  # every chapter stands in the bar above


def without_requests(app, what, name, obj, skip, options):
    """Leave out `set_fit_request` and the like: scikit-learn adds them, and their docstrings refer to its own pages."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def plain_bars(app, what, name, obj, options, lines):
    """Keep |x − μ| in docstrings an absolute value: docutils would look for a substitution of that name."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(`+[^`]*`+)", line)
            lines[at] = "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in pieces)


def setup(app):
    app.connect("autodoc-skip-member", without_requests)
    app.connect("autodoc-process-docstring", plain_bars)
