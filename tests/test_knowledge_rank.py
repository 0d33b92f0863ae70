"""What a word is worth to a record, and how the parts of a question add up."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.knowledge.fields import FIELDS
from kernelpilot_helpers.knowledge.lexicon import Lexicon, compiled
from kernelpilot_helpers.knowledge.model import Symptom, Vocabulary
from kernelpilot_helpers.knowledge.postings import CURES, Gathered, Postings
from kernelpilot_helpers.knowledge.question import Question, ask
from kernelpilot_helpers.knowledge.units import pooled
from tests.knowledge_made import ROOT, fact, only


def tables(*records: dict[str, list[str]], total: int = 10) -> Postings:
    """Records by column, among ``total``."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE doc (id)")
    connection.executemany("INSERT INTO doc VALUES (?)", [(number,) for number in range(total)])
    gathered = Gathered()
    for number, columns in enumerate(records, start=1):
        gathered.add(number, {name: columns.get(name, []) for name in FIELDS})
    gathered.write(connection)
    return Postings(connection)


def question(words: dict[str, list[str]] | None = None, **others: object) -> Question:
    empty: dict[str, object] = {
        "absorbed": {},
        "complaint": frozenset(),
        "joined": (),
        "concepts": {},
        "led": {},
        "related": {},
    }
    return Question(words=words or {}, **{**empty, **others})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    """Of the committed vocabulary."""
    return compiled(knowledge.load(knowledge.read(ROOT / "knowledge")).vocabulary)


def test_a_title_word_is_worth_its_weight_and_rarity() -> None:
    """Breaks when columns lose their weights, long columns their discount, or rare words their worth."""
    postings = tables({"words": ["alpha"]}, {"words": ["beta"] * 9}, {"context": ["alpha"]})
    # title of one word: 3 / (0.7 + 0.3 / 9) = 4.0909, saturated 4 * 4.0909 / 7.0909 = 2.3077
    # context of one word: 0.5 / (0.6 + 0.4 / 23) = 0.80986, saturated 4 * 0.80986 / 3.80986 = 0.85028
    # two of ten records: ln(1 + 8.5 / 2.5) ** 1.15 = 1.4816 ** 1.15 = 1.5716
    assert dict(postings.worths("alpha", 1.0)) == pytest.approx({1: 3.6267, 3: 1.3363}, abs=2e-3)
    # nine times in a title of nine: 27, saturated 3.6; one of ten: ln(1 + 9.5 / 1.5) ** 1.15 = 2.2091
    assert dict(postings.worths("beta", 0.5)) == pytest.approx({2: 3.9764}, abs=2e-3)
    assert dict(postings.worths("gamma", 1.0)) == {}


def test_a_lesson_says_less_than_a_title() -> None:
    """Breaks when the few hundred records with a lesson come first whatever is asked."""
    postings = tables({"words": ["alpha"]}, {"lesson": ["alpha", "alpha"]})
    worth = dict(postings.worths("alpha", 1.0))
    assert worth[1] > 4 * worth[2] > 0


def test_a_relative_stands_in_place_of_a_word_and_not_beside_it() -> None:
    """Breaks when a record is paid twice for saying one thing in two ways."""
    postings = tables({"words": ["alpha"]}, {"words": ["alpha"], "symbols": ["beta"]}, {"symbols": ["beta"]})
    found = pooled(postings, question({"alpha": ["alpha"]}, related={"alpha": ("beta",)}))
    assert found[1] == found[2] > found[3] > 0


def test_pieces_add_to_the_identifier() -> None:
    """Breaks when one of several records with an identifier cannot be told by its other pieces."""
    postings = tables({"paths": ["one_two", "onetwo"]}, {"paths": ["one_two", "onetwo"], "symbols": ["one", "two"]})
    found = pooled(postings, question({"one_two": ["one_two", "onetwo", "one", "two"]}))
    assert found[2] > found[1] > 0


def test_of_cures_the_best_counts_and_the_others_a_quarter() -> None:
    """Breaks when a diff that holds a little of everything leads every symptom."""
    postings = tables({"named": ["zm_a"]}, {"named": ["zm_b"]}, {"named": ["zm_a", "zm_b"]})
    led = {"zm_a": ("a", "slow"), "zm_b": ("b", "slow")}
    a, b = (dict(postings.worths(f"zm_{name}", 1.0, CURES))[3] for name in "ab")
    found = pooled(postings, question(led=led))
    assert found[1] == pytest.approx(1.2 * a)
    assert found[2] == pytest.approx(1.2 * 0.95 * b)
    assert found[3] == pytest.approx(1.2 * a + 0.25 * 1.2 * 0.95 * b)


def made(*says: tuple[str, ...]) -> Lexicon:
    """A vocabulary of symptoms only."""
    symptoms = tuple(Symptom(says=one, look_for=(), why="made") for one in says)
    return compiled(
        Vocabulary(format="", version=1, mechanisms={}, families={}, archs={}, symptoms=symptoms, topics={})
    )


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("loaders give the registers back", True),
        ("registers that loaders give", False),
        ("blocks of the SM", False),
        ("fewer blocks than SMs", True),
        ("one buffer is filled while two others drain", True),
        ("one small buffer is filled", False),
    ],
)
def test_a_symptom_is_heard_with_little_between_its_words(said: str, heard: bool) -> None:
    """Breaks when an article hides a symptom, or words far apart make one up."""
    names = made(("give registers",), ("blocks than SMs",), ("buffer filled while",))
    assert bool(names.symptoms(said)) is heard


def test_the_surest_symptom_leads() -> None:
    """Breaks when a symptom of one word's match comes before one that most of the question names."""
    names = made(("alu pipe",), ("integer divide", "address computation", "modulo"))
    found = names.symptoms("alu pipe busy, integer divide and modulo in address computation")
    assert {name: covered for name, (_, covered) in found.items()} == {"1": 5, "0": 2}
    assert list(found) == ["1", "0"]


def test_a_topic_is_named_by_words_that_stand_apart(lexicon: Lexicon) -> None:
    """Breaks when a word between the two of a topic hides it."""
    asked = ask("allreduce residual rmsnorm and quant in one kernel", lexicon)
    assert "zt_ar_norm" in asked.apart and "zt_ar_norm" not in asked.concepts


def test_what_a_counter_is_divided_by_is_not_asked_for(lexicon: Lexicon) -> None:
    """Breaks when every stall per active warp is taken for too few active warps."""
    asked = ask("smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct", lexicon)
    assert "zm_vectorized" in asked.led and "zm_occupancy" not in asked.led


def test_a_word_that_names_a_mechanism_is_no_complaint(lexicon: Lexicon) -> None:
    """Breaks when an instruction that is asked for counts as little as a symptom's wording."""
    assert "atomicAdd" not in ask("vectorized atomicAdd for half", lexicon).complaint
    assert "contention" in ask("atomic contention in a histogram", lexicon).complaint


def test_a_fault_asks_for_fixes_and_slowness_for_speed(tmp_path: Path) -> None:
    """Breaks when somebody with a wild address is shown optimizations first, or somebody with a slow kernel fixes."""
    fix = {"keep": True, "tier": "P", "score": 0, "why": "fix"}
    rows = [fact(1, words=["gemm", "offset", "overflow"]), fact(2, words=["gemm", "offset", "overflow"], select=fix)]
    rows += [fact(number, words=["norm"]) for number in range(3, 9)]
    source = knowledge.read(only(tmp_path / "index", rows))

    def first(said: str) -> str:
        return knowledge.search(source, said, knowledge.Filters(), 2, cache=tmp_path / "cache").hits[0].record.id

    assert first("int32 overflow in the gemm offset") == "a/b#2"
    assert first("gemm offset") == "a/b#1"
