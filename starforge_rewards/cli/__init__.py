"""The command `starforge`: thin, each file one command or one group of them."""
