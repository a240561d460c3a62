"""Trainings that are watched: one process trains, all who watch read its moments from memory."""
