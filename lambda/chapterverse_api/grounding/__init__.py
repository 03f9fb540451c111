"""Checks the draft of any generator sentence by sentence against the passages.

Sentences that claim nothing are recognized first (`claims`). Every other sentence is split into clauses and aligned
with the sentences, items, rows and lines of code of the passages (`analyzed_text`). Features of the pair (`features`)
go into a small trained model (`support_model`); a verbatim sentence of a passage needs no model. `verdict.judge`
decides whether passages support a sentence, contradict it or are silent.

A citation holds if its id was sent with this request and its passage supports the sentence, alone or together with
other cited passages. A citation that doesn't hold moves to the best passage that supports the sentence. It is dropped
if there is none, or if a cited passage contradicts the sentence. A sentence without a citation gets one if a passage
clearly supports it. Otherwise it is shown without one, and counted if it claims something.

If the words alone leave a sentence undecided, a model may have a second vote (`checkers`). It can drop a citation and
never add one.

The confidence of an answer is the mean probability, over its sentences with a claim, that the cited passages say the
same. It is calibrated on labelled answers of a language model (`site_example/docs/how-it-works/answers.md`).
"""
