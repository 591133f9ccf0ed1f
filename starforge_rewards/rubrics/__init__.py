"""The standards, pure: each file holds one kind's schema, `pose` and `tally`."""
