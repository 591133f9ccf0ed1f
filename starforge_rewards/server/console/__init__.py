"""The console: pages for people, mounted on the server's app at `/console`.

NiceGUI is imported by the page files alone, and they by `mount`, late: nothing else pays for it.
"""
