"""Not Python."""


def entry(:
