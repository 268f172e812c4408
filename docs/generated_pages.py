"""Writes the pages of the reference, one per public name with an index by subject, and the gallery of figures."""

from __future__ import annotations

import inspect
import re
import tomllib
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import likely
from likely.core.value import INTERNAL as OF_VALUES
from likely.estimation.component import INTERNAL as OF_COMPONENTS
from likely.names import SPACES as NAMESPACES

DOCS = Path(__file__).parent
HERE = DOCS / "reference"
SPACES = [space.removeprefix("likely.") for space in NAMESPACES]
HIDDEN = OF_VALUES | OF_COMPONENTS
INDEX = """# API reference

`import likely as lk`. What most programs need is at the top (`lk.Gaussian`), the rest in namespaces
(`lk.metrics.purity`). {extend} has what the author of a distribution needs.
"""


def public(path: str) -> Any:
    """The object of a name such as "metrics.purity"."""
    return reduce(getattr, path.split("."), likely)


def first_sentence(thing: Any) -> str:
    """The first line of a docstring, as text of a table in reST."""
    text = (inspect.getdoc(thing) or "").partition("\n")[0]
    return re.sub(r"\s*\([^()]*\d[^()]*\)\.?$", ".", text).replace("|", r"\|").replace("*", r"\*").replace("``", "`")


def is_shown(cls: type, name: str) -> bool:
    """Whether a reader of the reference looks for a member: public, and written in this library."""
    if name.startswith("_") or name in HIDDEN:
        return False
    member = inspect.getattr_static(cls, name, None)
    function = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", member)
    function = inspect.unwrap(function) if callable(function) else function
    return inspect.isfunction(function) and function.__module__.startswith("likely")


def is_method(cls: type, name: str) -> bool:
    """Whether a member is called, not read."""
    return not isinstance(inspect.getattr_static(cls, name), property | cached_property)


def attribute(full: str, cls: type, name: str) -> str:
    """The entry of a property: written here, because a colon in its first line would be read as the end of a type."""
    text = inspect.getdoc(inspect.getattr_static(cls, name)) or ""
    prose, prompt, examples = text.partition(">>> ")
    lines = (prose.replace("|", r"\|") + prompt + examples).splitlines()
    return "\n".join([f".. py:attribute:: {full}.{name}", "", *(f"   {line}".rstrip() for line in lines), ""])


def table(rows: list[tuple[str, str]]) -> str:
    """A table of two columns without a head."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: reference-table", ""]
    for left, right in rows:
        lines += [f"   * - {left}", f"     - {right}"]
    return "\n".join(lines)


def page(path: str) -> str:
    """The page of one name, in reST."""
    thing, full = public(path), f"likely.{path}"
    title = f"lk.{path}"
    lines = [title, "=" * len(title), ""]
    if not inspect.isclass(thing):
        kind = "autofunction" if inspect.isroutine(thing) else "autodata"
        return "\n".join([*lines, f".. {kind}:: {full}", ""])
    names = [name for name in dir(thing) if is_shown(thing, name)]
    methods = [name for name in names if is_method(thing, name)]
    lines += [f".. autoclass:: {full}", ""]
    if methods:
        rows = [(f":py:obj:`{name} <{full}.{name}>`", first_sentence(getattr(thing, name))) for name in methods]
        lines += [".. rubric:: Methods", "", table(rows), ""]
    for name in names:
        if name in methods:
            lines.append(f".. automethod:: {full}.{name}\n")
        elif not name.endswith("_"):  # fitted attributes stand in the docstring of the class
            lines.append(attribute(full, thing, name))
    return "\n".join(lines)


def index(subjects: dict[str, dict[str, list[str]]]) -> str:
    """The index: a table per subject, and the tree of pages."""
    parts = [INDEX.format(extend="[`lk.extend`](extend.rst)")]
    for subject, entry in subjects.items():
        title = subject[0].upper() + subject[1:]
        parts.append(f"## {title}\n")
        rows = [(f":doc:`lk.{path} <{path}>`", first_sentence(public(path))) for path in entry["names"]]
        parts.append("```{eval-rst}\n" + table(rows) + "\n```\n")
    pages = sorted((path for entry in subjects.values() for path in entry["names"]), key=str.lower)
    parts.append("```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join([*pages, "extend"]) + "\n```\n")
    return "\n".join(parts)


EXTEND = """lk.extend
=========

.. automodule:: likely.extend
"""


FIGURE = re.compile(r"^!\[(.+?)\]\(\.\./(_static/[\w-]+\.png)\)", re.MULTILINE)
GALLERY = """# Gallery

Every figure of the user guide; a click leads to the chapter that draws it.

"""


def gallery() -> str:
    """The figures of the chapters as thumbnails that lead there."""
    cells = []
    for page in re.findall(r"^[\w-]+$", (DOCS / "guide" / "index.md").read_text(encoding="utf-8"), re.MULTILINE):
        text = (DOCS / "guide" / f"{page}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        for caption, picture in FIGURE.findall(text):
            picture = f'<img src="{picture}" alt="{caption}"/>'
            cells.append(f'<a href="guide/{page}.html" title="{caption}">{picture}{title}</a>')
    return GALLERY + '<div class="gallery">\n' + "\n".join(cells) + "\n</div>\n"


def write() -> None:
    """Write what differs from the files that are there, so that Sphinx builds only these anew."""
    subjects = tomllib.loads((HERE / "subjects.toml").read_text(encoding="utf-8"))
    wanted = {f"{path}.rst": page(path) for entry in subjects.values() for path in entry["names"]}
    wanted |= {"index.md": index(subjects), "extend.rst": EXTEND}
    for file in HERE.iterdir():
        if file.name not in wanted and file.suffix in (".rst", ".md"):
            file.unlink()
    for name, text in (wanted | {"../gallery.md": gallery()}).items():
        file = HERE / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
