"""Ways to carry a job to a task's Python: on this machine, or a scripted stand-in for tests."""
