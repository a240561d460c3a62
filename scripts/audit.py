"""Check the installed packages for known vulnerabilities: python scripts/audit.py.

If the service cannot be reached, the check says why, ends with the line "not audited", and passes.
"""

import json
import subprocess
import sys

PATIENCE = 180
"""Seconds to wait for the service, for all packages together."""

NOT_AUDITED = "not audited"


def main() -> int:
    """Print the findings; return 1 if a package has a known vulnerability."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--format=json", "--progress-spinner=off", "--timeout=10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return skip(f"no answer in {PATIENCE} s")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return skip(next(reversed(done.stderr.split("\n")[:-1]), "it said nothing"))
    return report(packages)


def skip(reason: str) -> int:
    """Print why nothing was audited and return the exit code."""
    print(f"The service for known vulnerabilities cannot be reached: {reason}")
    print(NOT_AUDITED)
    return 0


def report(packages: list[dict[str, object]]) -> int:
    """Print pip-audit's findings on the packages and return the exit code."""
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        return skip("it knows none of the packages")
    findings = [(package, finding) for package in audited for finding in package["vulns"]]  # type: ignore[attr-defined]
    for package, finding in findings:
        fixed = ", ".join(finding["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {finding['id']}, fixed in {fixed}")
    print(f"{len(audited)} of {len(packages)} packages audited (known to the service), {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
