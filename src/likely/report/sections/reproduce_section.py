"""How to reproduce it: the command, the data's fingerprint, and the lines that load the model."""

from __future__ import annotations

from likely.report.markup import Markup, tag
from likely.report.page_blocks import section, table
from likely.report.study import Study


def reproduce(study: Study) -> Markup:
    """All that another person needs to come to the same page."""
    command = [tag("h3", "On the command line"), tag("pre", tag("code", study.command))] if study.command else []
    python = [
        tag("h3", "In Python"),
        tag("pre", tag("code", study.snippet or usual_lines(study.model_file, study.unit))),
    ]
    known = {"made": study.made, "fingerprint of the data": study.fingerprint,
             "seed": study.seed, "model file": study.model_file, **study.facts}  # fmt: skip
    facts = [[name, tag("code", value)] for name, value in known.items() if value not in (None, "")]
    lead = "The same data, command and seed give the same decisions."
    return section("reproduce", "How to reproduce", lead, *command, *python,
                   table(["What", "Here"], facts, label="Facts for reproducing"))  # fmt: skip


USES = {
    "row": "rows)  # columns of the same names, in any order",
    "sequence": "sequences)  # lk.read_sequences, or a list of arrays with these columns",
    "recording": "recordings)  # names of WAV files, or arrays of samples",
}


def usual_lines(model_file: str, unit: str = "row") -> str:
    """Python that loads the model.

    >>> print(usual_lines("wine.likely"))
    import likely as lk
    model = lk.load('wine.likely')
    model.predict(rows)  # columns of the same names, in any order
    """
    return f"import likely as lk\nmodel = lk.load({model_file!r})\nmodel.predict({USES[unit]}"
