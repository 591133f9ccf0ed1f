"""ART's trajectory and group where it is installed, else as its documentation has them."""

try:
    from art import Trajectory, TrajectoryGroup  # type: ignore[import-not-found]
except ModuleNotFoundError:
    from tests.training.art_stub import Trajectory, TrajectoryGroup

__all__ = ["Trajectory", "TrajectoryGroup"]
