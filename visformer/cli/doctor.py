"""``visformer doctor``."""

import json
import sys
from dataclasses import asdict

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def doctor(as_json: bool) -> None:
    """Look at this installation, and say what to fix. The exit code is 1 where something does not work.

    \b
    Examples:
      visformer doctor
      visformer doctor --json
    """
    from visformer.cli.checks import Finding, examine

    findings: list[Finding] = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            click.echo(f"{finding.state:4}  {finding.about:10}  {finding.found}")
            if finding.remedy:
                click.echo(f"{'':18}-> {finding.remedy}")
    to_fix = sum(finding.state == "fix" for finding in findings)
    if as_json:
        found = {"ok": to_fix == 0, "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        click.echo("All is well." if to_fix == 0 else f"{to_fix} to fix.")
    sys.exit(1 if to_fix else 0)
