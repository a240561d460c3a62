"""The version of the package, which files say that they were written by."""

VERSION = "0.2.0"
