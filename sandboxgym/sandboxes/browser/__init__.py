"""Web pages in a real Chromium that can be forked with their site."""
