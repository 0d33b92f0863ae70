"""Not Python."""

def entry(:
