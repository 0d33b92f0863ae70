"""A ``codex`` that answers as the real one does, from ``says.json`` beside it and from Codex's own two files.

Its digests are computed here, by the rule that codex 0.171.0 follows, so that ours are held against another's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROGRAM = r"""#!{python}
import hashlib, json, os, re, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
says = json.loads((here / "says.json").read_text())
words = [w for n, w in enumerate(sys.argv[1:]) if w != "-c" and sys.argv[n] != "-c"]
with (here / "asked").open("a") as f:
    f.write(" ".join(words) + "\n")
home = Path(os.environ.get("CODEX_HOME") or Path(os.environ["HOME"], ".codex"))
config = home / "config.toml"


def records():
    text = config.read_text() if config.exists() else ""
    found = re.findall(r'\[hooks\.state\.("(?:[^"\\]|\\.)*")\]\ntrusted_hash = "([^"]*)"', text)
    return {{json.loads(key): digest for key, digest in found}}


def hooks():
    path = home / "hooks.json"
    found = []
    value = json.loads(path.read_text()) if path.exists() else {{"hooks": {{"Stop": []}}}}
    for g, group in enumerate(value["hooks"]["Stop"]):
        for h, handler in enumerate(group["hooks"]):
            form = {{"async": False, "timeout": 600, **handler}}
            text = json.dumps({{"event_name": "stop", "hooks": [form]}}, sort_keys=True, separators=(",", ":"))
            digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
            key = f"{{path}}:stop:{{g}}:{{h}}"
            held = records().get(key)
            trust = "untrusted" if held is None else "trusted" if held == digest else "modified"
            entry = {{"key": key, "eventName": "stop", "command": handler["command"], "currentHash": digest,
                      "trustStatus": trust, "enabled": True}}
            found.append({{**entry, **(says["twist"] if "stop-hook" in handler["command"] else {{}})}})
    return [] if says["no hooks"] else found


def result(method, params):
    if method == "initialize":
        return {{"userAgent": "fake"}}
    if method == "hooks/list":
        return {{"data": [{{"cwd": params["cwds"][0], "hooks": hooks(), "warnings": [], "errors": []}}]}}
    if method == "skills/list":
        return {{"data": [{{"cwd": params["cwds"][0], "skills": says["skills"], "errors": says["skill errors"]}}]}}
    assert method == "config/batchWrite", method
    (here / "written.json").write_text(json.dumps(params["edits"]))
    if says["takes"]:
        with config.open("a") as f:
            for key, value in params["edits"][0]["value"].items():
                f.write(f"\n[hooks.state.{{json.dumps(key)}}]\ntrusted_hash = \"{{value['trusted_hash']}}\"\n")
            f.write(says["writes besides"])
    return {{"status": "ok"}}


if words == ["features", "list"]:
    print(says["features"])
elif words[:2] == ["debug", "prompt-input"]:
    listed = "\n".join(f"- {{n}}: what: it (is) (file: r0/{{n}}/SKILL.md)" for n in says["shown"])
    text = f"<skills_instructions>\n{{listed}}\n</skills_instructions>"
    content = [{{"type": "input_text", "text": text}}]
    print(json.dumps([{{"role": "developer", "content": content}}, {{"role": "user"}}]))
elif words == ["app-server"]:
    if says["server"] == "dies":
        sys.exit(3)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            print(json.dumps({{"method": "configWarning", "params": {{}}}}) + "\nno json\n", end="", flush=True)
            continue
        if says["server"] == "hangs" and request["method"] != "initialize":
            child = subprocess.Popen(["sleep", "600"])
            (here / "child").write_text(str(child.pid))
            time.sleep(600)
        fault = says["errors"].get(request["method"])
        said = {{"error": {{"code": -1, "message": fault}}}} if fault else {{"result": result(**{{
            "method": request["method"], "params": request["params"]}})}}
        print(json.dumps({{"id": request["id"], **said}}), flush=True)
else:
    sys.exit(2)
"""
DEFAULTS: dict[str, Any] = {
    "features": "hooks    stable    true\nplugin_hooks    removed    false",
    "shown": ["alpha"],
    "skills": [],
    "skill errors": [],
    "twist": {},
    "no hooks": False,
    "takes": True,
    "writes besides": "",
    "server": "answers",
    "errors": {},
}


def put(folder: Path, **says: object) -> Path:
    """A folder with this ``codex`` in it, for the front of PATH; called again, it changes what is said."""
    folder.mkdir(exist_ok=True)
    known = {name.replace(" ", "_"): name for name in DEFAULTS}
    value = {**DEFAULTS, **{known[name]: word for name, word in says.items()}}
    (folder / "says.json").write_text(json.dumps(value), encoding="utf-8")
    program = folder / "codex"
    if not program.exists():
        program.write_text(PROGRAM.format(python=sys.executable), encoding="utf-8")
        program.chmod(0o755)
    return folder
