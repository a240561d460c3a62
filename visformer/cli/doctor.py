"""``visformer doctor``."""

import json
import os
import sys
from dataclasses import asdict

import click

from visformer.system.limits import LIMITS
from visformer.system.settings import SETTINGS


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with settings and limits.")
@click.option("--limits", "only_limits", is_flag=True, help="List all limits and their reasons instead.")
def doctor(as_json: bool, only_limits: bool) -> None:
    """Check this installation and its settings, and say what to fix. Exit code 1: something does not work.

    \b
    Examples:
      visformer doctor
      visformer doctor --json
      visformer doctor --limits
    """
    if only_limits and not as_json:
        for each in LIMITS:
            click.echo(f"{each.name:21}  {each.what}: {each} ({each.reason})")
        return
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
        settings = [
            {"name": each.name, "value": os.environ.get(each.name), "default": each.by_default, "what": each.what}
            for each in SETTINGS
        ]
        report = {"ok": to_fix == 0, "findings": findings, "settings": settings, "limits": LIMITS}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2, default=asdict))
    else:
        click.echo("All is well." if to_fix == 0 else f"{to_fix} to fix.")
    sys.exit(1 if to_fix else 0)
