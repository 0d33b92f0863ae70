"""RLCR: work in rounds, checked by evidence commands and a reviewer, driven by the clients' Stop hook."""
