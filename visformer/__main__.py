"""``python -m visformer``: the command line where its script is not on the path."""

from visformer.cli import main

main(prog_name="visformer")
