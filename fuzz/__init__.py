"""Everything that comes from outside, given to the code that takes it: `make fuzz`, and shortly in the tests."""
