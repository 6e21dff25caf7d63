"""The results as a table on the terminal, JSON, a plot and a page of the documentation."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from .measure import Result, spread

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks" / "results"


def machine() -> dict[str, str]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }


def write(results: list[Result], took: float) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    content = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine(),
        "seconds": round(took),
        "rows": [asdict(result) | {"met": result.met} for result in results],
    }
    (FOLDER / "results.json").write_text(json.dumps(content, indent=2) + "\n")
    plot(results, ROOT / "docs" / "performance.svg")
    _write_page(results, content)


def table(results: list[Result]) -> str:
    rows = [("", "what", "value", "budget", "against", "ours", "peer")]
    for result in results:
        rows.append(
            (
                _mark(result),
                result.name,
                _value(result),
                _budget(result),
                result.against,
                spread(result.ours),
                spread(result.peer),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    notes = [f"   {result.name}: {result.note}" for result in results if result.note]
    return "\n".join([*lines, *notes])


def plot(results: list[Result], path: Path) -> None:
    """Each row's share of its budget: shorter is better, the line is the budget."""
    try:
        import matplotlib

        matplotlib.use("svg")
        import matplotlib.pyplot as pyplot
    except ImportError:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    rows = [result for result in results if result.met is not None]
    shares = [(result.value or 0) / (result.budget or 1) for result in rows]
    figure, axes = pyplot.subplots(figsize=(8, 0.32 * len(rows) + 1))
    colours = ["#2e7d32" if share <= 1 else "#c62828" for share in shares]
    axes.barh([result.name for result in rows], shares, color=colours)
    axes.axvline(1, color="#555", linestyle="--", linewidth=1)
    axes.set_xlabel("share of the budget")
    axes.invert_yaxis()
    matplotlib.rcParams["svg.hashsalt"] = "convect"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _write_page(results: list[Result], content: dict[str, object]) -> None:
    page = ROOT / "docs" / "performance.md"
    kept = page.read_text().split("<!-- below: by hand -->")[1] if page.exists() else "\n"
    facts = ", ".join(f"{key} {value}" for key, value in machine().items())
    rows = "\n".join(
        f"| {_mark(r)} {r.name} | {_value(r)} | {_budget(r)} | {r.against} | {spread(r.ours)} "
        f"| {spread(r.peer)} | {r.note} |"
        for r in results
    )
    page.write_text(
        "# Performance\n\n"
        "Made by `make bench`: each row against its peer in the same run on the same machine, "
        "turns interleaved; medians, with (least–most, number of turns). Seconds unless said.\n\n"
        f"Measured {content['date']} on {facts}.\n\n"
        "| what | value | budget | against | ours | peer | |\n|---|---|---|---|---|---|---|\n"
        f"{rows}\n\n![Share of each budget](performance.svg)\n\n"
        f"<!-- below: by hand -->{kept}"
    )


def _mark(result: Result) -> str:
    return {True: "✓", False: "✗", None: "·"}[result.met]


def _value(result: Result) -> str:
    return "–" if result.value is None else f"{result.value:.3g} {result.unit}"


def _budget(result: Result) -> str:
    return "–" if result.budget is None else f"≤ {result.budget:g} {result.unit}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
