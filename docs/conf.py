"""How Sphinx builds the documentation; nothing here reaches for the network."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.util.nodes import make_refnode

from likely._version import __version__

sys.path.insert(0, str(Path(__file__).parent))

import generated_pages

project = "likely"
author = "The likely developers"
copyright = "2026, The likely developers"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
if not tags.has("fast"):  # noqa: F821  # ./run test: pages of source code take long and cannot be wrong
    extensions.append("sphinx.ext.viewcode")
exclude_patterns = ["_build"]
default_role = "py:obj"  # `Gaussian` in a docstring is a link

suppress_warnings = ["ref.python"]  # a word in the type of a parameter that is the name of several attributes

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the sections Parameters and Returns
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = f"likely {release}"
html_static_path = ["_static"]
html_css_files = ["likely.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
}
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "gallery", "glossary", "bibliography")}  # of no section


def mathml(as_block):
    """A visitor of formulas that writes MathML, which browsers show without a script."""

    def visit(self, node):
        self.body.append(latex2mathml.tex2mathml(node.astext(), as_block=as_block))
        raise nodes.SkipNode

    return visit


def plain_bars(app, what, name, obj, options, lines):
    """Keep |x − μ| in docstrings an absolute value: docutils would look for a substitution of that name."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(`+[^`]*`+)", line)
            lines[at] = "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in pieces)


def attributes(app, what, name, obj, options, lines):
    """Attributes as a list of definitions: Napoleon would drop the underscore at the end of their names."""
    heads = [at for at, line in enumerate(lines[:-1]) if line == "Attributes" and lines[at + 1].startswith("---")]
    for head in heads:
        lines[head : head + 2] = [".. rubric:: Attributes", ""]
        at = head + 2
        while at < len(lines) and not (at + 1 < len(lines) and lines[at + 1].startswith("---")):
            if lines[at] and not lines[at].startswith(" "):
                term, _, kind = lines[at].partition(" : ")
                lines[at] = f"``{term}``" + (f" : {kind}" if kind else "")
            at += 1


def short_names(app, env, node, contnode):
    """`lk.Gaussian` and, in a docstring, `Gaussian` are links to likely.Gaussian; other words are plain literals."""
    target = node.get("reftarget", "").removeprefix("lk.").removesuffix("()")
    domain, found = env.get_domain("py"), []
    for name in (f"likely.{target}", *(f"likely.{space}.{target}" for space in generated_pages.SPACES)):
        if name in domain.objects:
            found.append(name)
    if not found or not target:
        return contnode
    entry = domain.objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, found[0])


def setup(app):
    app.connect("builder-inited", lambda app: generated_pages.write())
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-process-docstring", attributes, priority=400)
    app.connect("missing-reference", short_names)
    app.add_html_math_renderer("mathml", (mathml(False), None), (mathml(True), None))
