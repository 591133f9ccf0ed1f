"""Rubrics as owned objects. With no server, a folder serves them read-only."""
