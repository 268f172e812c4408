"""The campaign in pieces: one test file per process, and the date of each that passed in tests/campaign.toml.

    python -m tests.campaign                                   every piece, those first that passed longest ago
    python -m tests.campaign tests/io/test_kill.py             some pieces
    python -m tests.campaign another-processor                 all ordinary tests, as on an older processor

A run that is interrupted loses the piece at hand only. The dates stand beside the figures in
docs/development/reliability.md.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from tests import ledger
from tests.ledger import PROCESSOR, ROOT

PYTEST = (sys.executable, "-m", "pytest", "-n", "2", "-q")
MARKED = ("-m", "campaign", "--hypothesis-profile=campaign")
# Matrix products and machine code of an older processor, one thread: sums end in other last bits, and nothing may
# depend on those.
OLDER = {"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "generic", "OMP_NUM_THREADS": "1"}


def record(piece: str, minutes: float, summary: str, path: Path = ledger.CAMPAIGN) -> None:
    """Write down that a piece passed today."""
    entries: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    entries[piece] = {"date": datetime.now(UTC).date().isoformat(), "minutes": round(minutes, 1), "result": summary}
    lines = ["# Pieces of the campaign that passed: python -m tests.campaign writes it."]
    for name, entry in sorted(entries.items()):
        lines += ["", f'["{name}"]', *(f"{key} = {value!r}" for key, value in entry.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def pieces() -> list[str]:
    """Test files with tests of the campaign, and the older processor; those first that passed longest ago."""
    asked = [*PYTEST[:3], "--collect-only", "-q", *MARKED[:2]]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    files = dict.fromkeys(line.partition("::")[0] for line in found if "::" in line)
    passed = ledger.dates()
    here = [PROCESSOR] if platform.machine() == "x86_64" else []
    return sorted([*files, *here], key=lambda piece: (passed.get(piece, ""), piece == PROCESSOR))


def run(piece: str) -> bool:
    """Run one piece, and record it if it passed."""
    print(f"campaign: {piece}", flush=True)
    start, env = perf_counter(), dict(os.environ)
    if piece == PROCESSOR:
        env |= OLDER
        warm = [sys.executable, "-m", "likely", "warm"]  # else commands that tests start would compile, and time out
        subprocess.run(warm, cwd=ROOT, env=env, check=True)
    command = PYTEST if piece == PROCESSOR else (*PYTEST, *MARKED, piece)
    ended = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    lines = ended.stdout.strip().splitlines()
    if ended.returncode:
        print(*lines, sep="\n", flush=True)
        return False
    record(piece, (perf_counter() - start) / 60, lines[-1].partition(" in ")[0].strip("= "))
    print(f"campaign: {lines[-1]}", flush=True)
    return True


def main() -> int:
    """Run the pieces that were asked for, all of them if none was; go on after one that fails."""
    failed = [piece for piece in sys.argv[1:] or pieces() if not run(piece)]
    ledger.main()
    if failed:
        print("failed:", *failed, sep="\n", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
