"""Rubrics as training rewards: environments, their verifiers, and one adapter for each trainer."""
