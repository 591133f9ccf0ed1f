"""How a question gets a reply: judges that wrap judges, down to an engine or an endpoint."""
