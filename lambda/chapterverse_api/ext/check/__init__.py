"""Checks the draft of any generator sentence by sentence against the passages.

A claim is a sentence that says something about the subject, and so needs a source; other sentences are recognized first
(`claims`). Every sentence is split into clauses and aligned with the sentences, items, rows and lines of code of the
passages (`analyzed_text`). Features of the pair (`features`) go into a small trained model (`verdict`); a
verbatim sentence of a passage needs no model. `verdict.judge` decides whether passages support a sentence, contradict
it or are silent.

A citation holds if its id was sent with this request and its passage supports the sentence, alone or together with
other cited passages. A citation that doesn't hold moves to the best passage that supports the sentence. It is dropped
if there is none, or if a cited passage contradicts the sentence. A claim without a citation gets one if a passage
clearly supports it. Otherwise it is shown without one, and counted as unsupported.

    Verdict           of some passages on one sentence (`judge`)
    CheckedSentence   a sentence with the citations that hold (`Verifier.check`)
    VerifiedDraft     the results of a whole draft (`verify`)
    SourceVerdict     of all passages on one sentence that cites none (`Verifier.verdict`)

If the words alone leave a sentence undecided, a model may have a second vote (`draft.draft.Checker`). It can drop a
citation and never add one.

The confidence of an answer is the mean probability, over its claims, that the cited passages say the same. It is
calibrated on labelled answers of a language model (`site_example/docs/how-it-works/answers.md`).
"""
