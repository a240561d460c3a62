"""What stands around every page: the side bar, the head, sharing."""
