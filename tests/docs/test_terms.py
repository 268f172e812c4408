"""Each term of the index in docs/glossary.md stands where a reader scans the page that treats it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
INDEX = (DOCS / "glossary.md").read_text(encoding="utf-8").split("## Which page treats which term")[1]
ROWS = re.findall(r"^\| (.+?) \| \[(.+?)\]\(([\w/-]+)\.md\) \|$", INDEX, re.MULTILINE)
NOT_PROSE = (">", "|", "#", "!", "<", "    ")  # quotations, tables, headings, pictures, comments, formulas


def plain(text: str) -> str:
    """Text in lower case, on one line, without markup, with hyphens for dashes."""
    return re.sub(r"\s+", " ", re.sub("[`*]", "", text)).replace("–", "-").lower()


def scanned(page: str) -> tuple[str, list[str]]:
    """Title of a page; and its title, its headings and its first paragraph as plain text."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", prose)]
    first = next(block for block in blocks if block and not block.startswith(NOT_PROSE))
    return headings[0], [plain(text) for text in [*headings, first]]


def stands(term: str, texts: list[str]) -> bool:
    """Whether one of the texts has the term, as whole words (a plural counts)."""
    whole = re.compile(rf"(?<!\w){re.escape(plain(term))}(?:s|es)?(?!\w)")
    return any(whole.search(text) for text in texts)


def test_a_term_is_a_whole_word_in_any_case_and_number() -> None:
    assert stands("Kullback–Leibler", [plain("The *Kullback-Leibler*\ndivergence")]) and stands("outlier", ["outliers"])
    assert not stands("EM", ["state-space systems"]) and not stands("ROC", ["process noise"])


def test_every_row_of_the_index_is_read_once() -> None:
    assert len(ROWS) == len(re.findall(r"^\| ", INDEX, re.MULTILINE)) - 1 >= 60
    assert len({plain(term) for term, _, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("term", "title", "page"), ROWS, ids=[term for term, _, _ in ROWS])
def test_the_page_names_its_term(term: str, title: str, page: str) -> None:
    found, texts = scanned(page)
    assert title == found
    assert stands(term, texts), f"{page}.md has {term!r} in no heading and not in its first paragraph"
