"""Ask for known vulnerabilities of what is installed: python scripts/audit.py.

Where the service cannot be reached its last line is "not audited", with why above it, and it passes.
"""

import json
import subprocess
import sys

PATIENCE = 180
"""Seconds that the service gets for all packages together."""

NOT_AUDITED = "not audited"


def main() -> int:
    """Print what was found; 1 where a package has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format=json", "--progress-spinner=off", "--timeout=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return passed_over(f"no answer in {PATIENCE} s")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return passed_over(next(reversed(done.stderr.split("\n")[:-1]), "nothing was said"))
    return judged(packages)


def passed_over(why: str) -> int:
    """The exit code where nothing could be asked, which is told."""
    print(f"The service for known vulnerabilities cannot be asked here: {why}")
    print(NOT_AUDITED)
    return 0


def judged(packages: list[dict[str, object]]) -> int:
    """The exit code for pip-audit's list of packages, which is told."""
    asked = [package for package in packages if "vulns" in package]
    if not asked:
        return passed_over("it knows none of the packages")
    found = [(package, one) for package in asked for one in package["vulns"]]  # type: ignore[attr-defined]
    for package, one in found:
        fixed = ", ".join(one["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {one['id']}, fixed in {fixed}")
    print(f"{len(asked)} packages audited, {len(packages) - len(asked)} unknown to the service, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
