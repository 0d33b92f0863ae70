"""The page: honest in its words, safe with foreign text, whole for any number of attempts."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import msgspec

from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.report import ReportData, RunFacts, render
from tests.report_sim import EVIL, baseline, bench, row, seven, wrong


class _Page(HTMLParser):
    """Start tags, and text by the class of the innermost open tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_from_a_candidate_stays_text() -> None:
    """Breaks if motivation, reason, log or file text reaches the page, or a drawing, unescaped."""
    data = seven()
    log = msgspec.structs.replace(wrong(EVIL), verdict="Broken", blame="candidate", log=f"</pre>{EVIL}")
    bad = row(8, "BROKEN", reason=f"crash: {EVIL}", version=f"v008_{EVIL}", runs=("r8",))
    data = msgspec.structs.replace(
        data,
        task=EVIL,
        rows=(*data.rows, bad),
        runs={**data.runs, "r8": RunFacts(run="r8", verification=log, env={EVIL: EVIL})},
        faults=(Fault(where=EVIL, what=EVIL, fix=EVIL),),
    )
    html = render(data)
    assert "<script" not in html.lower()
    assert html.count("&lt;script&gt;") >= 10
    assert html.count("</pre>") == 1


def test_the_page_needs_nothing_but_itself() -> None:
    """Breaks if a link, image, font or style sheet is fetched from anywhere."""
    page = _Page(render(seven()))
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "image", "use"}
    assert not [value for _, attrs in page.tags for key, value in attrs.items() if key in ("src", "href", "xlink:href")]
    assert "url(" not in render(seven())


def test_headline_tells_the_direct_figure_its_real_confidence_and_what_a_cpu_shows() -> None:
    """Breaks if gains are chained (1.62 x 1.31 = 2.12 is 2.1222), 95 % is claimed, or the CPU note is lost."""
    text = _Page(render(seven())).text
    assert "v004_try4 is the best version" in text
    assert "2.12x" in text
    assert "+112.0 % [+105.6 %, +118.4 %] at 97.8 %" in text
    assert "CPU figures show the mechanism, not the kernel." in text
    assert "Target 1.50x of the baseline's speed: reached; even the lower bound is 2.06x." in text
    assert "CPU figures" not in render(msgspec.structs.replace(seven(), gpu="H200"))


def test_target_is_not_reached_by_the_point_alone() -> None:
    """Breaks if 'beats by' is read off the point estimate: 2.12 >= 2.1, but the interval begins at 2.06."""
    text = _Page(render(msgspec.structs.replace(seven(), target=2.1))).text
    assert "Target 2.10x of the baseline's speed: not shown; the lower bound is 2.06x." in text


def test_every_verdict_is_a_word_and_wrong_ones_are_explained() -> None:
    """Breaks if colour alone carries a verdict, or the place of an error is left out."""
    html = render(seven())
    for word in ("IMPROVED", "SAME", "REGRESSED", "AMBIGUOUS (partial)", "WRONG", "BROKEN"):
        assert f">{word}</span>" in html
    assert "columns 896..999 of every row" in html
    assert "no timing: only correct candidates are timed" in html
    assert "its runs hold no readable verify.json" in html  # v005 is BROKEN and left none


def test_environment_floor_and_mutation_score_are_shown() -> None:
    """Breaks if what limits the claims is dropped, or a per-run stamp is printed as an environment."""
    text = _Page(render(seven())).text
    assert "19/19 wrong programs noticed" in text
    assert "+-0.80 %, bias +0.10 % (v000_baseline.1; fit for a verdict)" in text
    assert "Example CPU 3000" in text
    assert "never shown" not in text


def test_no_attempt_at_all_is_a_page_without_a_claim() -> None:
    """Breaks if the empty task divides by zero attempts or claims a speed-up."""
    text = _Page(render(ReportData(task="t"))).text
    assert "Nothing was attempted yet." in text
    assert "1.00x" in text
    assert "no timing yet" in text
    assert "no A/A control on record" in text


def test_one_failed_attempt_claims_nothing() -> None:
    """Breaks if a lone WRONG attempt, which has no figure, breaks the axis or is called best."""
    data = ReportData(task="t", epoch=1, target=1.1, rows=(baseline(), row(1, "WRONG", reason="wrong.tolerance: x")))
    text = _Page(render(data)).text
    assert "No attempt was shown to be faster than the baseline." in text
    assert "Target 1.10x of the baseline's speed: not shown." in text


def test_a_gain_whose_timing_file_is_gone_says_so() -> None:
    """Breaks if a figure stands on the page as if its evidence could still be read."""
    data = seven()
    runs = dict(data.runs)
    runs["v004_try4.2"] = RunFacts(run="v004_try4.2", problems=("bench.json: not valid JSON",))
    html = render(msgspec.structs.replace(data, runs=runs))
    assert "no readable timing behind it: bench.json: not valid JSON" in html
    assert "no timing: bench.json: not valid JSON" in html


def test_84_attempts_take_less_than_a_second() -> None:
    """Breaks if rendering grows with the square of the attempts."""
    rows = (baseline(), *(row(n, "IMPROVED", 1.01, 1 + n / 50) for n in range(1, 85)))
    data = ReportData(
        task="t", epoch=1, rows=rows, runs={run: RunFacts(run=run, bench=bench(1.01)) for r in rows for run in r.runs}
    )
    render(data)
    start = time.perf_counter()
    html = render(data)
    assert time.perf_counter() - start < 1.0
    assert html.count('class="dot selected"') == 2 * 84 + 1  # both panels and the legend
