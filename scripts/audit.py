"""Ask for known vulnerabilities of what is installed: python scripts/audit.py.

Where the service cannot be reached it says so, and passes.
"""

import json
import subprocess
import sys

PATIENCE = 180
"""Seconds that the service gets for all packages together."""

UNREACHABLE = "The service for known vulnerabilities does not answer here: nothing was audited."


def main() -> int:
    """Print what was found; 1 where a package has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format=json", "--progress-spinner=off", "--timeout=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        packages = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        print(UNREACHABLE)
        return 0
    return judged(packages)


def judged(packages: list[dict[str, object]]) -> int:
    """The exit code for pip-audit's list of packages, which is told."""
    asked = [package for package in packages if "vulns" in package]
    if not asked:
        print(UNREACHABLE)
        return 0
    found = [(package, one) for package in asked for one in package["vulns"]]  # type: ignore[attr-defined]
    for package, one in found:
        fixed = ", ".join(one["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {one['id']}, fixed in {fixed}")
    print(f"{len(asked)} packages audited, {len(packages) - len(asked)} unknown to the service, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
