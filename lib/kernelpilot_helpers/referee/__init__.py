"""One transaction from a variant directory to a row in the lineage: build, verify, time, confirm, record, commit."""
