"""One candidate: its measuring job, what the job found (raw, without verdict), and its identity."""
