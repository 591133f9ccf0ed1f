"""One versioned rubric as training reward, benchmark and safety evaluation."""

__version__ = "0.2.0"
