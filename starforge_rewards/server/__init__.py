"""The server: rubrics, runs and the judge over HTTP, and the console's pages on the same app."""
