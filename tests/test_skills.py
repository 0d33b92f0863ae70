"""The skills and the prompt cards: valid for both clients, in step with the parser, the scripts and the policy."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kernelpilot_helpers import plan
from kernelpilot_helpers.cli import group
from kernelpilot_helpers.ncu import sections
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.scaffold import request
from tests import doc_files
from tests.contract.test_docs import parses

ROOT = Path(__file__).resolve().parents[1]
SKILLS = ROOT / "skills"
NAMES = ["humanize-kernel-agent-loop", "kernel-knowledge", "ncu-report", "profile-evidence"]
PAGES = [*sorted(SKILLS.rglob("*.md")), ROOT / "docs" / "prompt-cards.md"]
LOOP = SKILLS / NAMES[0]
SCRIPTS = ROOT / "vendor" / "humanize" / "scripts"


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def split(path: Path) -> tuple[dict[str, str], str]:
    """(front matter's top level, body). The four keys in use need no YAML library: one line each but metadata."""
    text = path.read_text(encoding="utf-8")
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL).groups()
    keys = {}
    for line in head.splitlines():
        if not line.startswith(" "):
            key, _, value = line.partition(":")
            keys[key] = value.strip()
    return keys, body


def code(text: str) -> list[str]:
    """Every line of fenced shell blocks, and every inline code span."""
    found = []
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        found += [line.partition("  #")[0].strip() for line in block.splitlines()]
    return found + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def commands(text: str) -> list[str]:
    """What an agent would type that starts with ``kernelpilot``."""
    parts = [part.strip() for line in code(text) for part in re.split(r"&&|\|\|", line)]
    return [p for p in parts if p.startswith("kernelpilot ")]


def fault(line: str, tmp_path: Path) -> str:
    """What the real parser says of a command; one that is only named needs no arguments."""
    words = line.split()[1:]
    command: click.Command | None = group
    while words and isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words[0])
        words = words[1:]
    if command is None:
        return f"no such command: {line}"
    if not words:
        return ""
    real = tmp_path / "file.csv"
    real.write_text("", encoding="utf-8")
    return parses(re.sub(r"\S+\.csv\b|\bFILE\b", str(real), line))


def test_the_bundle_has_these_skills_and_no_skill_inside_another() -> None:
    """Breaks when a skill is missing, nested (Codex would list it too), or a link (validators refuse it)."""
    assert sorted(p.parent.relative_to(SKILLS).as_posix() for p in SKILLS.rglob("SKILL.md")) == NAMES
    assert [p for p in SKILLS.rglob("*") if p.is_symlink()] == []
    assert list((ROOT / "vendor").rglob("SKILL.md")) == []


@pytest.mark.parametrize("name", NAMES)
def test_front_matter_is_what_every_validator_accepts(name: str) -> None:
    """Breaks when a key, a name, a description or a length is refused by one of the clients or validators."""
    keys, body = split(SKILLS / name / "SKILL.md")
    assert list(keys) == ["name", "description", "license", "metadata"]
    assert keys["name"] == name
    assert (keys["license"], keys["metadata"]) == ("Apache-2.0", "")
    quoted = re.fullmatch(r'"([^"\\<>]+)"', keys["description"])
    assert quoted and len(quoted[1]) < 500
    assert "use when" in quoted[1].lower()
    assert len(body.splitlines()) < 500
    assert len(body) / 3 < 5000  # characters per token: near 4 in English, 3 is on the safe side


@pytest.mark.parametrize("name", NAMES)
def test_agents_yaml(name: str) -> None:
    """Breaks when Codex's own limits on its interface file are missed, or the alias may fire by itself."""
    text = (SKILLS / name / "agents" / "openai.yaml").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^  (\w+): "?(.*?)"?$', text, re.MULTILINE))
    assert sorted(fields) == ["allow_implicit_invocation", "default_prompt", "display_name", "short_description"]
    assert 25 <= len(fields["short_description"]) <= 64
    assert f"${name} " in fields["default_prompt"]
    assert fields["allow_implicit_invocation"] == ("false" if name == "profile-evidence" else "true")


@pytest.mark.parametrize("path", sorted(SKILLS.rglob("*.md")), ids=page_id)
def test_nothing_that_a_client_would_substitute_or_run(path: Path) -> None:
    """Breaks when a body holds what Claude Code replaces or executes while loading the skill."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\$\d|\$ARGUMENTS|\$\{CLAUDE_|!`", text) == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_every_command_is_accepted_by_the_real_parser(path: Path, tmp_path: Path) -> None:
    """Breaks when a skill tells an agent to type what does not exist."""
    found = commands(path.read_text(encoding="utf-8"))
    assert [said for line in found if (said := fault(line, tmp_path))] == []


def test_the_loop_skill_names_each_step_of_the_flow() -> None:
    """Breaks when the flow loses a command: the skill is the only place where an agent learns of it."""
    said = {line.split()[1] for line in commands((LOOP / "SKILL.md").read_text(encoding="utf-8"))}
    flow = "doctor next scaffold knowledge ledger plan lock job try build attempt select gate tune dispatch report root"
    assert set(flow.split()) - {"root"} <= said


def test_the_monitor_line_works_for_either_client_alone(tmp_path: Path) -> None:
    """Breaks when the first line shown needs Codex's folder: with Claude Code alone there is none."""
    program = tmp_path / "kernelpilot"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(str(ROOT))}\n", encoding="utf-8")
    program.chmod(0o755)
    for page in (LOOP / "SKILL.md", ROOT / "docs" / "prompt-cards.md"):
        line = next(x for x in code(page.read_text(encoding="utf-8")) if x.startswith("source "))
        env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
        argv = ["bash", "-c", f"{line} && type humanize >/dev/null"]
        assert subprocess.run(argv, env=env, check=False, timeout=60).returncode == 0, page


def test_the_check_sees_a_stale_command(tmp_path: Path) -> None:
    """Breaks if the parser check cannot fail."""
    page = (
        "Run `kernelpilot attemt x` or:\n```sh\ncd x && kernelpilot attempt x --motivatoin y\n```\n`kernelpilot plann`"
    )
    assert len([line for line in commands(page) if fault(line, tmp_path)]) == 3


def test_every_script_that_is_named_exists_and_can_run() -> None:
    """Breaks when a skill sends an agent to a script that is not there or not executable."""
    named = set()
    for path in PAGES:
        named |= set(re.findall(r"/scripts/([\w.-]+\.sh)", path.read_text(encoding="utf-8")))
    assert named == {"setup-rlcr-loop.sh", "cancel-rlcr-loop.sh", "rlcr-stop-gate.sh", "humanize.sh"}
    assert sorted(n for n in named if not (SCRIPTS / n).is_file()) == []
    started = named - {"humanize.sh"} | {"rlcr"}
    assert sorted(n for n in started if not (SCRIPTS / n).stat().st_mode & 0o111) == []


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_files_that_are_named_exist(path: Path) -> None:
    """Breaks when a reference or a page of the bundle is renamed under a skill."""
    text = path.read_text(encoding="utf-8")
    linked = [path.parent / target for target in re.findall(r"\]\(([^)#:]+)\)", text)]
    linked += [ROOT / target for target in re.findall(r'\$\(kernelpilot root\)/([\w./-]+)"', text)]
    assert [str(p) for p in linked if not p.exists()] == []


def test_numbers_are_the_policys() -> None:
    """Breaks when a promised number changes in the policy and not in the skills, or the other way round."""
    weak, band, peak = (f"{x * 100:g} %" for x in (POLICY.weak_gain, POLICY.profile_band, POLICY.near_peak))
    loop = " ".join((LOOP / "SKILL.md").read_text(encoding="utf-8").split())
    for phrase in (
        f"At most {POLICY.max_rounds} rounds",
        f"After {POLICY.weak_rounds} weak rounds",
        f"After {POLICY.plateau_rounds} weak rounds in a row the gate",
        f"less than {weak} gain",
        f"within ±{band} of the baseline",
        f"at least {POLICY.research_sources} new sources",
        f"at least {POLICY.research_hypotheses} written hypotheses",
        f"more than {peak} of the measured roof",
        f"{POLICY.far_off:g}x off its target",
        f"{len(plan.TOPICS)} acceptance criteria",
    ):
        assert phrase in loop
    for path in sorted(SKILLS.rglob("*.md")):
        text = re.sub(r'"[^"\n]*"|\(".*?"\)|90 % of DRAM', "", path.read_text(encoding="utf-8"))  # quoted claims
        assert set(re.findall(r"\d+(?:\.\d+)? ?%", text)) <= {weak, band, peak}, path
        assert set(re.findall(r"(\d+) (?:new sources|weak rounds|rounds)", text)) <= {
            str(n) for n in (POLICY.research_sources, POLICY.weak_rounds, POLICY.plateau_rounds, POLICY.max_rounds)
        }, path


def test_the_criteria_page_lists_the_plans_criteria() -> None:
    """Breaks when a criterion is added to the plan and not explained, or explained and gone."""
    text = (LOOP / "references" / "plan-criteria.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\w+) \|", text, re.MULTILINE)[1:] == list(plan.TOPICS)
    assert f"# The {len(plan.TOPICS)} acceptance criteria" in text


def test_the_example_request_is_a_request(tmp_path: Path) -> None:
    """Breaks when the request that agents copy from no longer parses."""
    text = (LOOP / "references" / "request.md").read_text(encoding="utf-8")
    assert len(doc_files.write(LOOP / "references" / "request.md", tmp_path)) == text.count("```toml") + text.count(
        "```python"
    )
    made = request.parse_request((tmp_path / "request.toml").read_bytes(), str(tmp_path / "request.toml"))
    assert (made.contract.target.gpu, made.contract.target.speedup) == ("cpu", 1.10)
    assert [c.case_id for c in made.cases] == ["m64", "m17"]


def test_cards_come_in_pairs_for_both_clients() -> None:
    """Breaks when a card is written for one client only, or the two say different things."""
    text = (ROOT / "docs" / "prompt-cards.md").read_text(encoding="utf-8")
    codex = re.findall(r"^\[\$humanize-kernel-agent-loop\] (.+)$", text, re.MULTILINE)
    claude = re.findall(r"^/humanize-kernel-agent-loop (.+)$", text, re.MULTILINE)
    assert codex == claude
    assert len(codex) >= 3
    assert set(re.findall(r"\[\$([\w-]+)\]", text)) <= set(NAMES)


def test_no_machine_path() -> None:
    """Breaks when somebody's folder slips into a page that is read everywhere."""
    for path in [*PAGES, *SKILLS.rglob("*.yaml")]:
        found = re.findall(r"(?:/home|/root|/work|/Users|/tmp|/opt)/\S+", path.read_text(encoding="utf-8"))
        assert found == [], path


@pytest.mark.parametrize("name", NAMES)
def test_the_open_validator_accepts_it(name: str) -> None:
    """Breaks when the open standard's own validator refuses a skill."""
    beside = Path(sys.executable).with_name("agentskills")
    tool = str(beside) if beside.is_file() else shutil.which("agentskills")
    if tool is None:
        pytest.skip("agentskills is not installed: pip install skills-ref (Python 3.11 or newer)")
    done = subprocess.run(
        [tool, "validate", str(SKILLS / name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sections_of_every_capture_exist_in_ncu() -> None:
    """Breaks when a recipe, or a step of the digest, asks for a section that ncu does not have.

    The list is what ``ncu --list-sections`` of 2025.3.1 printed on an H200.
    """
    known = set((ROOT / "tests/golden/ncu/sections-2025.3.1.txt").read_text().split())
    pages = "\n".join(p.read_text() for p in (SKILLS / "ncu-report").rglob("*.md"))
    asked = set(re.findall(r"--section ([A-Za-z_]+)", pages))
    assert len(asked) > 8
    assert asked | set(sections.SECTIONS) | set(sections.ALWAYS) <= known
