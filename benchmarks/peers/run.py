"""Run the comparison: install, measure every tool, collect the results."""

from playwright.sync_api import sync_playwright

from benchmarks import chromium
from benchmarks.peers import enter, environment, stage
from benchmarks.peers.costs import FULL, OURS, PEERS, QUICK, Costs
from benchmarks.peers.report import Result
from benchmarks.peers.subjects import subject


def measured(*, quick: bool = False) -> Result:
    """Measure all tools at all lengths, and Enter; prints a line for each."""
    plan = QUICK if quick else FULL
    chromium.path()  # if there is none, fail before anything else takes time
    environment.install()
    found: list[Costs] = []
    with sync_playwright() as playwright:
        for tool in (OURS, *PEERS):
            failed_at = 0
            for n in plan.lengths:
                if failed_at:  # a tool that fails at one length would fail at any longer one
                    found.append(Costs(tool, n, failed=f"not at {failed_at}"))
                    continue
                found.append(stage.costs(playwright, tool, subject(n), plan))
                print(f"{tool}, {n} tokens: {found[-1].failed or 'measured'}", flush=True)
                failed_at = 0 if found[-1].paint_s else n
        enters = enter.measure(playwright, plan.enter, starts=plan.starts, rounds=plan.rounds)
        print(f"Enter to painted: {enters.failed or 'measured'}", flush=True)
    return Result(found, enters)
