"""The installer: standard library only, run before any venv exists and able to survive a broken one."""
