"""Without Ray there is nothing to collect."""

from importlib.util import find_spec

collect_ignore = ["test_on_ray.py"] if find_spec("ray") is None else []
