"""Run targets under atheris: python -m fuzz [TARGET ...] [--runs N]. Each in a process of its own."""

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SLOWEST = 1.0
"""Seconds that no input may take."""


def main() -> int:
    """Run the targets one after another; 1 where one has failed."""
    if "--one" in sys.argv:
        _fuzz(*sys.argv[2:])
    from fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs for each target (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = []
    for name in given.targets or TARGETS:
        command = [sys.executable, "-m", "fuzz", "--one", name, str(given.runs), str(given.seed)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        told = [line for line in done.stdout.splitlines() if line.startswith(f"{name}:")]
        print(
            told[-1] if told else f"{name}: no end",
            flush=True,
        )
        if not told or done.returncode not in (0, -signal.SIGALRM):  # libFuzzer's clock may still go while it ends
            failed.append(name)
            print("\n".join([*done.stdout.splitlines()[-30:], *done.stderr.splitlines()[-6:]]), flush=True)
    print(f"{len(failed)} of {len(given.targets or TARGETS)} targets failed" if failed else "no target failed")
    return 1 if failed else 0


def _fuzz(name: str, most: str, seed: str) -> None:
    """In a process of its own: atheris ends it, and instruments only what has not been imported yet."""
    import atheris

    runs = int(most)
    with atheris.instrument_imports(include=["visformer"]):
        from fuzz.targets import SEEDS, TARGETS
    count, slowest, example = 0, 0.0, b""

    def timed(data: bytes) -> None:
        nonlocal count, slowest, example
        begin = time.perf_counter()
        TARGETS[name](data)
        count, took = count + 1, time.perf_counter() - begin
        if took > slowest and count > len(SEEDS[name]) + 1:  # the first ones import what is needed
            slowest, example = took, data
        if count == runs:
            print(f"{name}: {count:,} inputs, slowest {1000 * slowest:.1f} ms, {example[:40]!r}", flush=True)
            if slowest > SLOWEST:
                raise TimeoutError(f"{slowest:.1f} s for {example!r}")

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for number, content in enumerate(SEEDS[name]):
        (folder / str(number)).write_bytes(content)
    options = [f"-atheris_runs={runs}", f"-seed={seed}", "-max_len=4096", "-timeout=10", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(folder)], timed)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
