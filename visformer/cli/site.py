"""``visformer site``: the translator as static files, or as one HTML file."""

from pathlib import Path

import click

from visformer.cli.running import PATH, with_default


@click.command()
@with_default("--out", "-o", type=PATH, default="site", help="The folder, or with --single the file, to write.")
@click.option("--single", is_flag=True, help="Write one HTML file, which also opens from disk.")
def site(out: Path, single: bool) -> None:
    """Write the translator as a page that needs no server: any host of static files can serve it.

    \b
    Examples:
      visformer site --out site
      visformer site --single --out visformer.html
      python -m http.server -d site
    """
    from visformer.web.site import site as write_site

    click.echo(f"Written to {write_site(out, single=single)}")
