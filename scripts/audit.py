"""Check the installed packages for known vulnerabilities: python scripts/audit.py.

If the service cannot be reached, the check says so and passes.
"""

import json
import subprocess
import sys

PATIENCE = 180
"""Seconds to wait for the service, for all packages together."""

UNREACHABLE = "The service for known vulnerabilities does not answer here: nothing was audited."


def main() -> int:
    """Print the findings; return 1 if a package has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format=json", "--progress-spinner=off", "--timeout=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        packages = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        print(UNREACHABLE)
        return 0
    return report(packages)


def report(packages: list[dict[str, object]]) -> int:
    """Print pip-audit's findings on the packages and return the exit code."""
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        print(UNREACHABLE)
        return 0
    findings = [(package, finding) for package in audited for finding in package["vulns"]]  # type: ignore[attr-defined]
    for package, finding in findings:
        fixed = ", ".join(finding["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {finding['id']}, fixed in {fixed}")
    print(f"{len(audited)} of {len(packages)} packages audited (known to the service), {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
