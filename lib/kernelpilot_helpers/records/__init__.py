"""Versioned, strict files: the one place that writes and parses bytes on disk.

An owner module declares an ``Owner`` (format name, version, type, upgrades). JSON documents carry ``format`` and
``version``; a JSON Lines log carries them in its first line. One record is one ``os.write`` of one line.
"""

from kernelpilot_helpers.records.codec import (
    Fault,
    Json,
    Owner,
    convert,
    dump,
    encode,
    parse,
    parse_json,
    parse_toml,
    sha256,
    upgrade,
)
from kernelpilot_helpers.records.disk import (
    crash_point,
    file_sha256,
    load,
    read_bytes,
    save,
    write_bytes,
    write_text,
)
from kernelpilot_helpers.records.logs import Log, append, append_all, chain_faults, header, parse_log, read_log, repair

__all__ = [
    "Fault",
    "Json",
    "Log",
    "Owner",
    "append",
    "append_all",
    "chain_faults",
    "convert",
    "crash_point",
    "dump",
    "encode",
    "file_sha256",
    "header",
    "load",
    "parse",
    "parse_json",
    "parse_log",
    "parse_toml",
    "read_bytes",
    "read_log",
    "repair",
    "save",
    "sha256",
    "upgrade",
    "write_bytes",
    "write_text",
]
