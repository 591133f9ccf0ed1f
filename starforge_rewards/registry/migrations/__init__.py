"""Schema revisions, one file each; a released one is never edited."""
