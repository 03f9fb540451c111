from __future__ import annotations

from chapterverse_api.ext.evaluation.comparison import compare_runs
from chapterverse_api.ext.evaluation.report import lines, of_answers, printable
from evaluation.made import answer, answered, refusal, row, run, silent, unanswerable


def test_every_question_has_a_line_and_every_figure_too() -> None:
    told = list(lines(run(row("a", 2), row("b", None, refused=True), unanswerable("c", refused=False)), None))
    assert told[:4] == [
        "section page evidence outcome     id  question",
        "      2    2     0.90 answered    a   What of a?",
        "      –    –     0.90 REFUSED     b   What of b?",
        "      –    –     0.10 NOT REFUSED c   What of c?",
    ]
    assert told[5] == ("tea, generation 3: 2 answerable and 1 unanswerable questions, 2.0 ms each (95 % within 2.0 ms)")
    assert "mrr          0.250   0.250" in told
    assert told[-2:] == [
        "refused      0.000   0 of 1 unanswerable",
        "answered     0.500   1 of 2 answerable",
    ]


def test_without_answerable_questions_there_is_no_table() -> None:
    told = list(lines(run(unanswerable("c", refused=True)), None))
    assert not any(line.startswith("mrr") for line in told)
    assert told[-1] == "answered         –   0 of 0 answerable"


def test_a_comparison_says_what_it_is_of() -> None:
    now = run(row("a", 1), row("new", 1), row("x", 2, 4))
    before = run(row("a", 3, refused=True), row("old", 1), row("x", 2, 3))
    told = list(lines(now, compare_runs(now, before, silent)))
    assert "Against the earlier run, over the 2 questions of both:" in told
    assert "1 only in this run, or in other words there: new" in told
    assert "1 only in the earlier one, or in other words there: old" in told
    assert "hit@1            0.000  0.500  +0.500  +0.000 to +1.000  unclear" in told
    at = told.index("worse   x: ndcg@10 0.693, now 0.651")
    assert told[at + 1] == "better  a: not refused any more; section at 3, now 1; ndcg@10 0.500, now 1.000"


def test_a_terminal_is_not_told_what_to_do() -> None:
    hostile = run(row("a\x1b[2J", 1, question="Why\n\u202e\x07?"))
    told = "\n".join(lines(hostile, None))
    assert not {"\x1b", "\x07", "\u202e"} & set(told)
    assert "Why \ufffd\ufffd?" in told
    assert printable("Größe 日本\t語") == "Größe 日本 語"


def test_answers_are_told_after_the_search() -> None:
    made = answer(confidence=0.8, citations=4, valid=3, nuggets=2, contained=1)
    told = list(lines(answered(row("a", 1, answer=made), unanswerable("b", refused=True, answer=refusal())), None))
    at = told.index("Answers by extractive: 1 answered, 1 not_in_docs")
    assert told[at + 1 : at + 5] == [
        "citation_validity       0.750   3 of 4 citations",
        "citation_precision      1.000   2 of 2 pairs",
        "citation_recall         1.000   2 of 2 sentences",
        "nuggets                 0.500   1 of 2 nuggets",
    ]
    assert "refused@unanswerable    1.000" in told
    assert "caught@foreign          0.900   9 of 10 sentences made wrong" in told
    assert "caught@negation             –" in told
    assert "brier                   0.040   of the confidence, the less the better; 1 of 1 answers right" in told
    assert told[-1] == "Mean seconds until: sources 0.001, first words 0.002, end 0.002"


def test_without_any_answer_there_is_none_to_tell_of() -> None:
    told = list(lines(answered(row("a", 1), caught={}, interrupted=True), None))
    assert "Answers by extractive: none" in told
    assert not any(line.startswith("brier") for line in told)


def test_what_answers_warn_of() -> None:
    rows = row("a", 1, answer=answer()), row("b", 1)
    away = row("c", 1, answer=answer("degraded", degraded="The model was away."))
    assert not [*of_answers(run(*rows)), *of_answers(answered(rows[0]))]
    assert list(of_answers(answered(*rows, interrupted=True))) == [
        "Interrupted: the figures of answers are those of the first 1 questions."
    ]
    assert list(of_answers(answered(rows[0], interrupted=True))) == ["Interrupted: the verifier was not tested."]
    assert list(of_answers(answered(rows[0], away))) == [
        "1 of 2 answers were not made as configured and count for nothing: The model was away."
    ]


def test_a_comparison_has_room_for_the_names_of_answers() -> None:
    both = [answered(row("a", 1, answer=answer())) for _ in range(2)]
    told = list(lines(both[0], compare_runs(both[0], both[1], silent)))
    assert "citation_precision   1.000  1.000  +0.000  +0.000 to +0.000  same" in told
    assert "mrr                  1.000  1.000  +0.000  +0.000 to +0.000  same" in told
