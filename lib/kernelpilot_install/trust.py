"""Whether Codex was told to trust our hook: read from its own record and recomputed; ``grant`` alone changes it.

Codex runs a hook only when ``[hooks.state."<hooks.json>:stop:<group>:<handler>"] trusted_hash`` in its config.toml
equals the digest of the definition. The digest covers command, label and time-out, not the launcher's content, so an
upgrade behind the same command keeps it. Checked against codex 0.171.0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from kernelpilot_install import hooks
from kernelpilot_install.files import sha256
from kernelpilot_install.places import Places
from kernelpilot_install.problems import InstallError
from kernelpilot_install.splice import groups

Trust = Literal["trusted", "pending", "changed", "disabled"]
DEFAULT_TIMEOUT_S = 600


def digest(handler: Mapping[str, Any]) -> str:
    """Codex's digest of one Stop handler that stands alone in its group."""
    form = {
        "async": bool(handler.get("async", False)),
        "command": handler.get("command"),
        "timeout": handler.get("timeout", DEFAULT_TIMEOUT_S),
        "type": handler.get("type"),
    }
    if "statusMessage" in handler:
        form["statusMessage"] = handler["statusMessage"]
    text = json.dumps(
        {"event_name": "stop", "hooks": [form]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return f"sha256:{sha256(text.encode())}"


def config(folder: Path) -> dict[str, Any]:
    """Codex's config.toml, empty where there is none. Raises InstallError when it cannot be read."""
    path = folder / "config.toml"
    if not path.is_file():
        return {}
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:  # the tool's venv has tomli, the installer's own Python perhaps not
        try:
            import tomli as tomllib  # noqa: PLC0415
        except ImportError:
            raise InstallError(
                "this Python cannot read TOML", where=str(path), fix="look at /hooks in Codex instead"
            ) from None
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValueError as e:
        raise InstallError(f"not TOML ({e})", where=str(path), fix="correct the file by hand") from None


def key(at: Places, found: hooks.Standing) -> str:
    """Codex's name of a handler in the user's hooks.json, by its place in ``hooks.Stop``."""
    return f"{at.codex_spelt / hooks.FILES['codex']}:stop:{found.group}:{found.handler}"


def state(at: Places, found: hooks.Standing) -> Trust:
    """What Codex will do with this handler of the user's hooks.json. Raises InstallError like ``config``."""
    table = config(at.codex).get("hooks", {})
    entries = table.get("state", {}) if isinstance(table, dict) else {}
    entry = entries.get(key(at, found)) if isinstance(entries, dict) else None
    if not isinstance(entry, dict) or "trusted_hash" not in entry:
        return "pending"
    if entry.get("enabled") is False:
        return "disabled"
    return "trusted" if entry["trusted_hash"] == digest(found.data) else "changed"


def left_behind(at: Places) -> list[str]:
    """What an uninstall that is about to begin leaves the user to do in Codex; empty where that cannot be read."""
    launch = at.clone / hooks.LAUNCHER
    path = at.codex / hooks.FILES["codex"]
    lines = []
    try:
        found = groups(hooks.read(path) or b"", where=str(path))
        for s in hooks.standing(found):
            if s.program != launch:
                continue
            if state(at, s) != "pending":
                heading = f"[hooks.state.{json.dumps(key(at, s), ensure_ascii=False)}]"
                lines.append(
                    f"Codex's record of our hook stays: remove the table {heading} from {at.codex}/config.toml"
                )
            if s.group + 1 < len(found):
                lines.append("Codex knows hooks by their place: review those that stood after ours again in /hooks")
    except (InstallError, OSError):
        return lines
    return lines


def notice(at: Places) -> str:
    """What the user must still do in Codex before our hook runs, empty once it is trusted."""
    launch = at.clone / hooks.LAUNCHER
    try:
        path = at.codex / hooks.FILES["codex"]
        found = [s for s in hooks.standing(groups(hooks.read(path) or b"", where=str(path))) if s.program == launch]
        if found and all(state(at, s) == "trusted" for s in found):
            return ""
    except (InstallError, OSError):
        return "whether Codex trusts the Stop hook cannot be read here: open /hooks in Codex; untrusted it does not run"
    return "the Stop hook is pending review: open /hooks in Codex and trust it; until then it does not run"
