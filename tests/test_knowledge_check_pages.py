"""The check of pages: lead table, links, references, figures of speed, addresses, sizes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.knowledge import check_speed, check_tree, page_parts
from tests import knowledge_tree as tree

LEAD = "# T\n\n| Field | Value |\n| --- | --- |\n| Kind | card |\n| Read at | 2026-11-30 |\n\n"


def faults(folder: Path) -> list[tuple[str, str]]:
    """(place below the folder, what) of each."""
    found = knowledge.check_pages(knowledge.read(folder))
    assert all(fault.fix for fault in found)
    return [(Path(fault.where).relative_to(folder).as_posix(), fault.what) for fault in found]


def of(folder: Path, text: str, path: str = "cards/x.md") -> list[str]:
    """What is found in one page."""
    return [what for _, what in faults(tree.make(folder, pages={path: text}))]


def test_a_sound_tree_has_no_fault(tmp_path: Path) -> None:
    """Breaks when the check complains about what the format allows."""
    assert faults(tree.make(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("# Wide loads", "Wide loads", "no title"),
        ("| Field | Value |", "Field Value", "no lead table"),
        ("| Kind | technique |", "| Kind | idea |", "Kind: want one of technique, symptom"),
        ("| Kind | technique |", "| Kind | technique |\n| Colour | red |", "Colour: no field of the lead table"),
        ("| Kind | technique |", "| Kind | technique |\n| Types | fp8 |", "Types: stands twice in the lead table"),
        ("`vectorized`", "`wide`", "Mechanisms: 'wide' is not known"),
        ("| Families | gemm |", "| Families | gemm, matmul |", "Families: 'matmul' is not known"),
        ("| Types | fp16 |", "| Types | half |", "Types: 'half' is not known"),
        ("`mem.uncoalesced`", "`mem.slow`", "Classes: 'mem.slow' is not known"),
        ("sm80 and newer", "Ampere", "Architectures: want to begin with one such as sm90, got 'Ampere'"),
        ("sm80 and newer", "sm_90a, sm100f; sm42", "Architectures: 'sm42' is not known"),
        ("a/b#2, c/d#1", "a/b#2, c/d#9", "Evidence: c/d#9 is no record of the corpus"),
        ("a/b#1, a/b#2, c/d#1", "a/b#1, c/d#1", "Evidence: 2 records of 2 repositories; a technique needs 3 of 2"),
        ("c/d#1 |", "a/b#1 |", "Evidence: a/b#1 stands twice"),
        ("a/b#2, c/d#1", "a/b#2, c/d#1, issue 7", "Evidence: 'issue 7' is no record id"),
        ("a/b#1, a/b#2, c/d#1", "thin: a/b#1", "Evidence: 'thin:' without a reason"),
        ("a/b#1, a/b#2, c/d#1", "thin:", "Evidence: 'thin:' without a reason"),
        (
            "| Kind | technique |",
            "| Kind | technique |\n| Types |",
            "lead table: want rows of two cells, got '| Types |'",
        ),
        ("| Families | gemm |", "| Families | gemm | norm |", "lead table: want rows of two cells"),
        ("| --- | --- |\n", "", "lead table: no row of dashes below its head"),
        ("| Kind | technique |", "| Kind | card |", "Kind: a page here is technique, got 'card'"),
        ("2026-11-30", "2026-02-30", "Read at: want a date like 2026-01-31, got '2026-02-30'"),
        ("2026-11-30", "2099-01-01", "Read at: 2099-01-01 lies in the future"),
        ("## Pitfalls\nTails.\n", "## Pitfalls\n\n", "section 'Pitfalls' is empty"),
        ("2026-11-30", "yesterday", "Read at: want a date like 2026-01-31, got 'yesterday'"),
        ("| Read at | 2026-11-30 |\n", "", "Read at: missing"),
        ("## Pitfalls\n", "", "section 'Pitfalls' is missing"),
        ("- `c/d@000000000001:z.py`\n", "", "2 source references; a technique needs 3"),
    ],
)
def test_each_fault_of_a_lead_table_is_found(old: str, new: str, what: str, tmp_path: Path) -> None:
    """Breaks when a page that search and routing cannot place, or a technique without evidence, passes."""
    assert tree.TECHNIQUE.count(old) >= 1
    said = of(tmp_path, tree.TECHNIQUE.replace(old, new, 1), "techniques/wide-loads.md")
    assert said and said[0].startswith(what) and len(said) <= 2, said


def test_a_thin_technique_says_so(tmp_path: Path) -> None:
    """Breaks when the way out for techniques with little evidence is closed."""
    page = tree.TECHNIQUE.replace("| Evidence | a/b#1, a/b#2, c/d#1 |", "| Evidence | thin: one record only, a/b#1 |")
    assert of(tmp_path, page, "techniques/wide-loads.md") == []


@pytest.mark.parametrize(
    "line",
    [
        "It is 1.3x faster.",
        "It runs 2x faster on H100.",
        "About 20 % faster (a/b#1).",
        "A speedup of 12% was claimed by a/b#1.",
        "25% lower latency on H100",
        "It reaches 1550 TFLOPS on H100.",
        "Reads at 3.2 TB/s, a/b#1.",
        "The kernel takes 12.5 us on sm90.",
        "It fell from 12 us to 9 us.",
        "| B200 | 4.1 us |",
        "- Small rows gain\n  10 % on H100, says nobody.",
        "12.5 us",
        "It drops from 12 to 9 us.",
        "It drops to 9 us.",
        "The kernel takes 12 microseconds.",
        "Throughput +18%.",
        "It improves by 18%.",
        "It needs 40% less latency.",
        "It reduces latency 40%.",
        "It saves 40%.",
        "It reads 3.2 TB per second.",
        "x1.3 for long rows",
        "It is 1.3 x better.",
        "It is twice as fast.",
        "It doubles throughput.",
        "1.3 times faster",
        "2,000 tokens/s",
        "On H100 it is 1.3x faster, see a/b#99.",
        "On H100 it is 1.3x faster, see `scripts/no_such_script.py`.",
    ],
)
def test_a_figure_of_speed_without_source_or_gpu_is_found(line: str, tmp_path: Path) -> None:
    """Breaks when a page states what nobody can look up."""
    assert [w for w in of(tmp_path, f"{LEAD}{line}\n") if w.startswith("figure of speed ")], line


@pytest.mark.parametrize(
    "line",
    [
        "1.3x faster on H100, fp16, M = 64, claimed by a/b#1.",
        "- 20 % faster on sm90\n  (`a/b@000000000001:csrc/x.cu`).",
        "| B200 | 8 TB/s | [vendor](https://example.org/b200) |",
        "Shared memory is 228 KB; the tile is 64x128x32 with 2x the registers.",
        "Look at it when stall.long_scoreboard >= 30 % and the kernel takes less than 10 us.",
        "Each is shorter than about 10 us; saving 5 us is noise, and 0.8 x SMs is a grid.",
        "With 25 % of the warps idle, unroll by 4x.",
        "`--warmup 100 us` and 96 % of sectors.",
        "- Two kernels with a gap of 1 to 3 us between them.",
        "Reduce the tile by 2 when 20 % of the rows are padding.",
        "1.3x faster on H100, see `scripts/gpu_constants.py`.",
    ],
)
def test_a_sourced_figure_a_size_and_a_threshold_pass(line: str, tmp_path: Path) -> None:
    """Breaks when limits, sizes and thresholds of counters are taken for measurements."""
    assert of(tmp_path, f"{LEAD}{line}\n") == []


def test_a_card_about_one_gpu_names_it_in_its_title(tmp_path: Path) -> None:
    """Breaks when a page of one GPU's constants must name it in each row, or a technique may leave it to its title."""
    row = "| copy | 4.1 TB/s | `scripts/gpu_constants.py` |\n"
    card = LEAD.replace("# T", "# H200")
    assert of(tmp_path / "a", card + row) == []
    assert of(tmp_path / "b", LEAD + row) == ["figure of speed '4.1 TB/s' without its GPU"]
    assert of(tmp_path / "c", card.replace("card", "symptom") + row, "symptoms/x.md") == [
        "figure of speed '4.1 TB/s' without its GPU"
    ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("`a/b@00000000001:csrc/x.cu`", "a/b@00000000001:csrc/x.cu: no source reference as it should be written"),
        ("`a/b@00000000000G:csrc/x.cu`", "a/b@00000000000G:csrc/x.cu: no source reference"),
        ("see a/b@000000000001:csrc/x.cu", "a/b@000000000001:csrc/x.cu: no source reference"),
        ("`a/b@000000000001:csrc/x.cu#`", "a/b@000000000001:csrc/x.cu#: no source reference"),
        ("`x/y@000000000001:csrc/x.cu`", "x/y@000000000001:csrc/x.cu: repository x/y is not known"),
        ("ask who@example.org", "holds an e-mail address"),
        ("thanks to @somebody", "@somebody: looks like somebody's login"),
        ("[me](https://github.com/somebody)", "github.com/somebody: looks like somebody's login"),
        ("read /home/me/x.cu", "/home/m...: a path of one machine"),
        ("`a/b@main:no/such.py`", "a/b@main:no/such.py: no source reference"),
        ("`a/b@v1.2.3:`", "a/b@v1.2.3:: no source reference"),
        ("`a/b@HEAD~1:`", "a/b@HEAD~1:: no source reference"),
        ("`a/b@abcd:`", "a/b@abcd:: no source reference"),
        ("`a/b@000000000001:csrc/x.cu#0`", "a/b@000000000001:csrc/x.cu#0: no source reference"),
        ("`a/b@000000000001:csrc/x.cu#import`", "a/b@000000000001:csrc/x.cu#import: no source reference"),
        ("`a/b@000000000001:./README.md`", "a/b@000000000001:./README.md: no source reference"),
        ("ask WHO@EXAMPLE.ORG", "holds an e-mail address"),
        ("[me](https://github.com/somebody/)", "github.com/somebody/: looks like somebody's login"),
        ("file:///home/me/x.cu", "file:/...: a path of one machine"),
        ("read ~/x.cu", "~/x...: a path of one machine"),
        ("read C:\\Users\\me", "C:\\U...: a path of one machine"),
        ("as a/b#77 shows", "a/b#77 is no record of the corpus"),
        ("a `stray backtick", "a backtick without its other one"),
        ("```\ncode", "a block of code that is never closed"),
        ("[up](../../../etc/passwd)", "link to ../../../etc/passwd: leaves the tree"),
        ("[root](/etc/passwd)", "link to /etc/passwd: leaves the tree"),
        ("[f](ftp://example.org/x)", "link to ftp://example.org/x: only pages of the tree and web addresses"),
        ('[t](gone.md "title")', "link to gone.md: nothing there"),
        ('<a href="gone.md">t</a>', "link to gone.md: nothing there"),
        ("[t][nowhere]", "link to [nowhere]: nowhere defined"),
        ("bell \x07", "holds the control character '\\x07'"),
        ("nul \x00", "holds the control character '\\x00'"),
        ("\x1b[31mred", "holds the control character '\\x1b'"),
        ("left\u202eright", "holds the control character '\\u202e'"),
        ("[gone](../gone.md#part)", "link to ../gone.md: nothing there"),
        ("[b]: ../gone.md", "link to ../gone.md: nothing there"),
        ("x " * 61, "122 characters: a line outside a table stays within 120"),
    ],
)
def test_each_fault_of_a_line_is_found(line: str, what: str, tmp_path: Path) -> None:
    """Breaks when a reference that no tool can follow, an address or somebody's machine passes."""
    said = of(tmp_path, f"{LEAD}{line}\n")
    assert len(said) == 1 and said[0].startswith(what), said


def test_code_and_ids_are_no_addresses(tmp_path: Path) -> None:
    """Breaks when decorators, commits or blocks of code are taken for logins and references."""
    folder = tree.make(tmp_path, [tree.row("a/b#1", id="a/b@000000000001", pr=None, how="direct")], pages={})
    text = (
        "A `@triton.jit` kernel; `~/.cache` of [x]; a/b@000000000001: this,\n"
        "and https://github.com/a/b/pull/1.\n\n```python\n# [x](y.md)\n```\n"
    )
    (folder / "cards").mkdir()
    (folder / "cards/x.md").write_text(LEAD + text)
    assert faults(folder) == []


def test_a_stray_backtick_hides_no_reference(tmp_path: Path) -> None:
    """Breaks when references are found by pairs of backticks: after a stray one, code is text and text is code."""
    said = of(tmp_path, f"{LEAD}a ` stray, then `x/y@000000000001:csrc/x.cu` and `a/b@main:x.cu`\n")
    assert "x/y@000000000001:csrc/x.cu: repository x/y is not known" in said
    assert "a/b@main:x.cu: no source reference as it should be written" in said
    inside = "```\n`a/b@main:x.cu`\n```\n"
    assert of(tmp_path / "b", LEAD + inside) == []


def test_pages_and_tree_stay_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a page is longer than one reads, or the tree grows past its bounds unseen."""
    topic = LEAD.replace("card", "topic") + "short\n" * 700
    said = of(tmp_path, topic, "routing/topics/x.md")
    assert said == [f"{len(topic)} bytes: a page stays below 4096, so that it is read whole"]
    monkeypatch.setattr(check_tree, "TREE_BYTES", 10)
    monkeypatch.setattr(check_tree, "FACTS_BYTES", 10)
    whats = [re.sub(r"^\d+", "N", what) for what in of(tmp_path / "b", LEAD)]
    assert whats == ["N bytes: the tree stays below 10", "N bytes of mined facts: they stay below 10"]


def test_a_finding_names_its_line(tmp_path: Path) -> None:
    """Breaks when a finding cannot be opened at its line."""
    folder = tree.make(tmp_path, pages={"cards/x.md": f"{LEAD}fine\n\n1.3x on H100\n"})
    assert faults(folder) == [("cards/x.md:10", "figure of speed '1.3x' without its source")]


def test_generated_pages_are_read_for_size_lead_and_links_only(tmp_path: Path) -> None:
    """Breaks when labels of records are judged as our prose, or dead links of a generated page pass."""
    page = f"{LEAD.replace('card', 'index')}{page_parts.GENERATED}\n1.3x here\n[gone](gone.md)\n"
    assert of(tmp_path, page, "references/prs/b.md") == ["link to gone.md: nothing there"]


def test_the_mark_of_a_script_frees_no_page_of_ours(tmp_path: Path) -> None:
    """Breaks when anybody can switch the checks off by quoting a line."""
    said = of(tmp_path / "a", f"{LEAD}{page_parts.GENERATED}\n1.3x here\n")
    assert said[0].startswith("says that a script wrote it") and said[1].startswith("figure of speed '1.3x'")
    quoted = f"{LEAD.replace('card', 'index')}Ours: 1.3x.\n\n{page_parts.GENERATED}\n"
    said = of(tmp_path / "b", quoted, "references/prs/b.md")
    assert said[0].startswith("says that a script wrote it") and said[1].startswith("figure of speed '1.3x'")


def test_parts_of_a_page() -> None:
    """Breaks when fields, references or ids of a page are read wrongly."""
    page = page_parts.parse("techniques/wide-loads.md", tree.TECHNIQUE)
    assert (page.title, page.kind, page.slug) == ("Wide loads", "technique", "wide-loads")
    assert page.names("Mechanisms") == ("vectorized",) and page.evidence == ("a/b#1", "a/b#2", "c/d#1")
    first = page_parts.refs(page.text)[0]
    assert (str(first), first.words) == ("a/b@000000000001:csrc/x.cu#load", ("load",))
    both = page_parts.refs("`a/b@000000000001:x.cuh#Gemm.run` and `a/b@000000000001:x.cuh#ns::f`")
    assert [ref.words for ref in both] == [("Gemm", "run"), ("ns", "f")]
    assert page_parts.ids("a/b#1, a/b@0123456789ab: yes; `a/b@0123456789ab:x.cu` x/a/b#2") == (
        "a/b#1",
        "a/b@0123456789ab",
    )
    assert page_parts.blocks("- a\n  b\n\n| c |\n| d |\ne\nf") == ((1, "- a b"), (4, "| c |"), (5, "| d |"), (6, "e f"))
    assert check_speed.figure_of("waits `12 us`") == ""


@pytest.mark.parametrize(
    "path", ["notes.txt", "cards/notes.txt", "other/x.md", "x.md", "cards/a/b/x.md", "data/x.json"]
)
def test_only_what_belongs_there_stands_in_the_tree(path: str, tmp_path: Path) -> None:
    """Breaks when a stray file, which nothing reads and nobody checks, is carried along."""
    folder = tree.make(tmp_path)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(LEAD)
    assert (path, "belongs nowhere in the tree") in faults(folder)


@pytest.mark.parametrize("text", ["garbage", "[]", '{"format":"x","version":1,"corpus":{},"counts":{},"pages":[]}'])
def test_an_index_that_is_none_is_found(text: str, tmp_path: Path) -> None:
    """Breaks when index.json may hold anything."""
    folder = tree.make(tmp_path)
    (folder / "index.json").write_text(text)
    ((where, what),) = faults(folder)
    assert where == "index.json" and what.startswith(("no index of pages", "format: want kernelpilot.knowledge-index"))


def test_links_of_the_disk_and_odd_files_are_findings_and_hide_no_other(tmp_path: Path) -> None:
    """Breaks when a page can live outside of the tree, or one odd file ends the check of all others."""
    (tmp_path / "out.md").write_text(LEAD)
    folder = tree.make(tmp_path / "tree", pages={"cards/x.md": f"{LEAD}[long]({'a' * 5000}.md)\n\n1.3x\n"})
    (folder / "cards/out.md").symlink_to(tmp_path / "out.md")
    (folder / "data/lessons/out.jsonl").symlink_to(tmp_path / "out.md")
    source = knowledge.read(folder)
    (folder / "cards/gone.md").symlink_to("nowhere.md")
    (folder / "cards/folder.md").mkdir()
    said = {(Path(f.where).relative_to(folder).as_posix(), f.what[:20]) for f in knowledge.check_pages(source)}
    assert said == {
        ("cards/out.md", f"a link to {tmp_path}"[:20]),
        ("data/lessons/out.jsonl", f"a link to {tmp_path}"[:20]),
        ("cards/gone.md", "a link to nowhere.md"),
        ("cards/folder.md", "a folder with the na"),
        ("cards/x.md", "link to aaaaaaaaaaaa"),
        ("cards/x.md:8", "5011 characters: a l"),
        ("cards/x.md:10", "figure of speed '1.3"),
    }


def test_a_page_is_text_and_the_tree_has_some(tmp_path: Path) -> None:
    """Breaks when bytes that are no text, or a tree without pages, pass."""
    folder = tree.make(tmp_path / "a", pages={"cards/x.md": LEAD})
    (folder / "cards/x.md").write_bytes(LEAD.encode() + b"fine\n\xff\n")
    assert ("cards/x.md:9", "not UTF-8: byte 0xff") in faults(folder)
    assert faults(tree.make(tmp_path / "b", pages={})) == [(".", "no pages (*.md)")]
