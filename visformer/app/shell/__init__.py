"""The parts around every page: the side bar, the head, sharing."""
