"""Run the benchmarks and print ratios: ``python -m benchmarks [model|long|browser|peers|all] [--json FILE]``."""

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import FULL, QUICK, Effort, Row, table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and save if requested."""
    options = _parser().parse_args(arguments)
    machine = machine_facts(options.threads)
    print("\n".join(f"{name}: {value}" for name, value in machine.items()), flush=True)
    if options.quick:
        print("--quick: shows that everything runs; the numbers mean nothing")
    rows = []
    for row in _rows(options.what, QUICK if options.quick else FULL):
        rows.append(row)
        print(".", end="", flush=True)
    result: dict[str, Any] = {"machine": machine, "quick": options.quick, "rows": [row.as_json() for row in rows]}
    if rows:
        print("\n\n" + table(rows))
    if options.what in ("peers", "all"):
        result["peers"] = _peers(quick=options.quick)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _peers(*, quick: bool) -> dict[str, Any]:
    from benchmarks.peers.report import tables
    from benchmarks.peers.run import measured

    result = measured(quick=quick)
    print("\n" + tables(result))
    return result.as_json()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What visformer costs, as ratios.")
    parser.add_argument("what", nargs="?", choices=("model", "long", "browser", "peers", "all"), default="all")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the rows there too")
    parser.add_argument("--threads", type=int, help="number of torch threads; by default torch decides")
    return parser


def machine_facts(threads: int | None = None) -> dict[str, str]:
    """The machine and the versions that the ratios are measured with."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    warning = ", busy with something else: the ratios will be noisy" if busy > 0.3 * cores else ""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {cores} cores",
        "load before": f"{busy:.1f}{warning}",
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
        "torch threads": str(torch.get_num_threads()),
    }


def _rows(what: str, effort: Effort) -> Iterator[Row]:
    if what in ("model", "all"):
        from benchmarks import atlas, batches, effects, models, whole_model, wrapped
        from benchmarks.subjects import bundled_translator

        translator, which = bundled_translator()
        print(f"model: {which}", flush=True)
        yield from models.rows(translator, effort)
        yield from batches.rows(effort)
        yield from wrapped.rows(effort)
        yield from effects.rows(effort)
        yield from atlas.rows(effort)
        yield from whole_model.model_rows(effort)
    if what in ("model", "long", "all"):
        from benchmarks import long_texts

        yield from long_texts.rows(effort)
    if what in ("browser", "all"):
        from benchmarks import browser, history, site, whole_model

        yield from browser.rows(effort)
        yield from history.rows(effort)
        yield from whole_model.browser_rows(effort)
        yield from site.rows(effort)


if __name__ == "__main__":
    main()
