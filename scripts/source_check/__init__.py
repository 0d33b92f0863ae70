"""Do the sources that the knowledge tree names say what it says of them? Parts of verify_sources.py."""
