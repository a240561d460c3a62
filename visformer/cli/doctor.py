"""``visformer doctor``: the checks, and the command that runs them.

Each check reports what it found and, unless all is well, a remedy of one line. No check depends on what it examines: a
broken torch is a finding, not a traceback.
"""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

import click

from visformer.cli.packages import HERE, declared, install
from visformer.errors import VisformerError
from visformer.system import settings
from visformer.system.files import damaged
from visformer.system.limits import LIMITS

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
"""Browsers for tests and benchmarks, which drive the first one that is installed."""

PORT = 8501
PATIENCE = 3.0
"""Timeout of a request to the hub, in seconds."""

FindingState = Literal["ok", "note", "fix"]


@dataclass(frozen=True)
class Finding:
    """The result of a check and its remedy, "" if all is well; each in one line.

    State "note": the app runs, but may lack something; "fix": something does not work.
    """

    about: str
    state: FindingState
    found: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Run all checks in order. A check that raises is a finding too."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:  # the other checks run all the same
            about = check.__name__.removeprefix("_")
            yield Finding(about, "fix", f"could not be checked: {error!r}", "report this line as an issue")


def _python() -> Iterator[Finding]:
    found = f"{platform.python_version()} on {platform.platform(terse=True)}, {sys.executable}"
    old = sys.version_info < (3, 11)
    yield Finding("python", "fix" if old else "ok", found, "install Python 3.11 or newer" if old else "")


def _packages() -> Iterator[Finding]:
    from packaging.requirements import Requirement

    for extra, lines in declared().items():
        needed = {each.name: each.specifier for each in map(Requirement, lines)}
        versions = {name: _installed(name) for name in needed}
        missing = [name for name, version in versions.items() if version is None]
        other = [
            f"{name} {version} instead of {needed[name]}"
            for name, version in versions.items()
            if version is not None and not needed[name].contains(version, prereleases=True)
        ]
        lacks = [f"{name} is not installed" for name in missing]
        if extra and missing:
            yield Finding("packages", "note", f"{'; '.join(lacks)}: only the extra {extra} needs that", install(extra))
        elif missing or other:
            yield Finding("packages", "fix", "; ".join([*lacks, *other]), install(extra))
        else:
            yield Finding("packages", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _checkpoints() -> Iterator[Finding]:
    for folder in sorted(card.parent for card in (HERE / "model" / "checkpoints").glob("*/README.md")):
        broken = list(damaged(folder))
        for path, what in broken:
            yield Finding("checkpoint", "fix", f"{path} {what}", f"git checkout -- {path}, or reinstall visformer")
        if not broken:
            yield Finding("checkpoint", "ok", f"{folder.name}: every file matches its checksum")


def _fonts() -> Iterator[Finding]:
    if sys.platform in ("darwin", "win32"):
        yield Finding("fonts", "ok", "this system comes with Chinese fonts")
        return
    install = "install one, on Debian and Ubuntu: apt-get install fonts-noto-cjk"
    if shutil.which("fc-list") is None:
        yield Finding("fonts", "note", "unknown: fontconfig is not installed; PNG files may lack Chinese", install)
        return
    families = sorted({line.split(",")[0].strip() for line in _output("fc-list", ":lang=zh", "family").splitlines()})
    if families:
        yield Finding("fonts", "ok", f"Chinese: {', '.join(families[:3])}{' ...' if families[3:] else ''}")
    else:
        yield Finding("fonts", "fix", "no Chinese font: PNG files and browsers on this machine show boxes", install)


def _browser() -> Iterator[Finding]:
    install = "only tests and benchmarks need one; on Debian: apt-get install chromium"
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        yield Finding("browser", "note", f"none of {', '.join(CHROMIUM)} found", install)
        return
    if version := _output(path, "--version").strip():
        yield Finding("browser", "ok", version)
    else:
        yield Finding("browser", "note", f"{path} does not start", install)


def _threads() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS")
    text = f"{cores} cores, OMP_NUM_THREADS {'not set' if setting is None else setting}"
    if setting is not None and not (setting.isdigit() and 1 <= int(setting) <= cores):
        yield Finding("threads", "fix", text, f"unset OMP_NUM_THREADS, or set it to 1 ... {cores}")
        return
    torch = _torch_threads()
    if isinstance(torch, str):
        yield Finding("threads", "fix", f"{text}; torch cannot be imported: {torch}", "reinstall torch")
        return
    text += f", torch uses {torch} from Python and {torch if setting else max(1, cores // 2)} in the app"
    quota = _quota()
    if setting is None and quota is not None and quota < max(1, cores // 2):
        remedy = f"set OMP_NUM_THREADS={max(1, int(quota))}: more threads than cores wait for each other"
        yield Finding("threads", "note", f"{text}, but this container may use {quota:g}", remedy)
        return
    yield Finding("threads", "ok", text)


def _torch_threads() -> int | str:
    try:
        return int(import_module("torch").get_num_threads())
    except Exception as error:  # a wheel for another system may raise anything
        return str(error).strip().split("\n")[0] or repr(error)


def _quota() -> float | None:
    """Return how many cores the container may use; None if unlimited."""
    try:
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return int(most) / int(period)
    except (OSError, ValueError):
        return None


def _port() -> Iterator[Finding]:
    if refused := port_refused("127.0.0.1", PORT):
        remedy = "visformer run takes the next free port; --port chooses one"
        yield Finding("port", "note", f"{PORT} is in use ({refused})", remedy)
    else:
        yield Finding("port", "ok", f"{PORT} is free")


def port_refused(address: str, port: int) -> str:
    """Return why a server cannot listen there; "" if it can."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as trial:
        if os.name == "posix":  # as servers do, so that a connection just closed does not block the port
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def _writing() -> Iterator[Finding]:
    try:
        temporary = tempfile.gettempdir()
    except FileNotFoundError:
        temporary = ""
    places: tuple[tuple[str, str, FindingState, str], ...] = (
        (os.getcwd(), "this folder", "note", "give export and trace another folder with -o; the app needs none"),
        (temporary, "the temporary folder", "fix", "set TMPDIR to a writable folder"),
    )
    for folder, what, state, remedy in places:
        label = f"{what} {folder}".strip()
        if refused := _refused(folder):
            yield Finding("writing", state, f"{label} cannot be written to: {refused}", remedy)
        else:
            yield Finding("writing", "ok", f"{label} can be written to")


def _refused(folder: str) -> str:
    """Return why a file cannot be written there; "" if it can."""
    if not folder:
        return "it does not exist"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"visformer")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _hub() -> Iterator[Finding]:
    if _installed("transformers") is None or _installed("huggingface_hub") is None:
        yield Finding("hub", "ok", "not used: transformers is not installed, and the bundled model needs no network")
        return
    cache = _hub_cache()
    n_models = len(list(cache.glob("models--*"))) if cache.is_dir() else 0
    yield Finding("hub cache", "ok", f"{cache}, {n_models} models")
    endpoint = settings.HF_ENDPOINT()
    if settings.HF_HUB_OFFLINE().upper() in ("1", "ON", "YES", "TRUE"):
        yield Finding("hub", "ok", "HF_HUB_OFFLINE is set: models are loaded from folders and the cache")
    elif not endpoint.startswith(("http://", "https://")):
        remedy = f"HF_ENDPOINT must begin with https://, as in {settings.HUB}"
        yield Finding("hub", "fix", f"HF_ENDPOINT is {endpoint}, which is not an address", remedy)
    elif _answers(endpoint):
        yield Finding("hub", "ok", f"{endpoint} answers")
    else:
        remedy = "set HF_ENDPOINT to a mirror you can reach, or HF_HUB_OFFLINE=1; the bundled model needs no network"
        yield Finding("hub", "note", f"{endpoint} does not answer", remedy)


def _hub_cache() -> Path:
    """Return where huggingface_hub keeps models; importing it would take a second."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _answers(endpoint: str) -> bool:
    import urllib.error  # other commands need none of it
    import urllib.request

    request = urllib.request.Request(endpoint, method="HEAD", headers={"User-Agent": "visformer-doctor"})
    try:
        urllib.request.urlopen(request, timeout=PATIENCE).close()
    except urllib.error.HTTPError:
        return True  # an error is an answer too
    except (OSError, ValueError):
        return False
    return True


def _settings() -> Iterator[Finding]:
    for setting in settings.SETTINGS:
        value = os.environ.get(setting.name)
        try:
            setting()
        except VisformerError as error:
            yield Finding("settings", "fix", str(error), f"{setting.what}; default: {setting.by_default}")
        else:
            found = f"{value}, default: {setting.by_default}" if value else setting.by_default
            yield Finding("settings", "ok", f"{setting.name}: {found}")


def _output(*command: str) -> str:
    """Return what a program prints; "" if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _checkpoints,
    _fonts,
    _browser,
    _threads,
    _port,
    _writing,
    _hub,
    _settings,
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with settings and limits.")
@click.option("--limits", "only_limits", is_flag=True, help="List all limits with their reasons instead.")
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
    findings: list[Finding] = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            click.echo(f"{finding.state:4}  {finding.about:10}  {finding.found}")
            if finding.remedy:
                click.echo(f"{'':18}-> {finding.remedy}")
    to_fix = sum(finding.state == "fix" for finding in findings)
    if as_json:
        listed = [
            {"name": each.name, "value": os.environ.get(each.name), "default": each.by_default, "what": each.what}
            for each in settings.SETTINGS
        ]
        report = {"ok": to_fix == 0, "findings": findings, "settings": listed, "limits": LIMITS}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2, default=asdict))
    else:
        click.echo("All good." if to_fix == 0 else f"{to_fix} to fix.")
    sys.exit(1 if to_fix else 0)
