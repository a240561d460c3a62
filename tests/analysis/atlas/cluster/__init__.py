"""An atlas on a real Ray cluster; `make ray` runs these tests, in an environment that has it."""
