"""New rows get the cluster they belong to: what `likely predict` writes for a model of `likely cluster`."""

from __future__ import annotations

from typing import Any


class Clustered:
    """The clusters of one batch, ready to be written."""

    def __init__(self, shares: Any, kept: Any, novel: Any, reasons: list[str]) -> None:
        self.shares, self.kept, self.novel, self._reasons = shares, kept, novel, reasons

    @classmethod
    def of(
        cls, model: Any, frame: Any, how: dict[str, Any], keep: list[str], missing: Any, allow: bool, whose: str = ""
    ) -> Clustered:  # fmt: skip
        """Probabilities of the clusters for a frame of cells; `how` may set an alarm for rows unlike all of them."""
        from likely.automl.novelty_detector import NoveltyDetector
        from likely.automl.table_classifier import Typed, laid_out
        from likely.data.read_table import chosen
        from likely.data.table import Table
        from likely.estimation.novelty.novelty_score import exceeds

        kept = chosen(frame, keep)
        table = Table.like(model.schema, frame, missing=missing, allow_missing=allow, whose=whose)
        rows = laid_out(table.frame, list(model.schema))
        watch, rate = NoveltyDetector.of_model(model), how.get("novelty")
        seen = watch.score(rows)
        novel = seen.has_unseen if rate is None else seen.has_unseen | exceeds(seen.novelty, watch.level(rate))
        reasons = [seen.why(i) if beyond else "" for i, beyond in enumerate(novel.tolist())]
        return cls(model.predict_proba(Typed(rows)), kept, novel, reasons)

    def csv(self, proba: bool, header: bool) -> str:
        """Lines of a CSV file."""
        import polars as pl

        columns = [
            pl.Series("cluster", self.shares.argmax(axis=1) + 1),
            pl.Series("probability", self.shares.max(axis=1)),
        ]
        if proba:
            columns += [pl.Series(f"p({k + 1})", share) for k, share in enumerate(self.shares.T)]
        why = pl.Series("reason", [reason or None for reason in self._reasons], dtype=pl.String)
        columns += [pl.Series("novel", self.novel), why]
        taken = {column.name for column in columns}
        kept = self.kept.rename({name: f"input {name}" for name in self.kept.columns if name in taken})
        return pl.DataFrame([*kept.iter_columns(), *columns]).write_csv(include_header=header)

    def json_lines(self, proba: bool) -> str:
        """One JSON object per line."""
        import json

        own, best = (self.shares.argmax(axis=1) + 1).tolist(), self.shares.max(axis=1).tolist()
        kept = self.kept.iter_rows(named=True) if self.kept.width else ({} for _ in own)
        lines = []
        for i, cells in enumerate(kept):
            record = {**cells, "cluster": own[i], "probability": best[i]}
            if proba:
                record["probabilities"] = self.shares[i].tolist()
            record |= {"novel": bool(self.novel[i]), "reason": self._reasons[i] or None}
            lines.append(json.dumps(record, default=str))
        return "".join(f"{line}\n" for line in lines)
