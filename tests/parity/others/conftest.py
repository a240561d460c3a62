"""Other packages warn about themselves; without them there is nothing to collect."""

from importlib.util import find_spec

collect_ignore = [f"test_{package}.py" for package in ("captum", "transformer_lens") if find_spec(package) is None]
