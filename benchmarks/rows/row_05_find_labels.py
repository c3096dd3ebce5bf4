"""Finding the labels of a long sequence."""

from __future__ import annotations

import random

from benchmarks import theirs as reference
from benchmarks.inputs import processor_folder, text_of, write_talks
from benchmarks.measure import median_seconds
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="find labels",
    what=(
        "Labels of one conversation of about 32,000 tokens in 32 turns, whose text is already rendered and tokenised. "
        "Ours is timed twice: as the loader does it (text and tokens to labels), and through the front door's "
        "function of the reference's name, which is handed ids that it did not make: it renders the conversation and "
        "trusts the markers in the ids where they can be no others than the template's (where they could, it tokenises "
        "the text again)."
    ),
    figures=(
        Figure(name="seconds", what="time", unit="s", goal=Goal(times=40)),
        Figure(name="front_door", what="time, ids made elsewhere", unit="s"),
        Figure(name="labelled", what="tokens with a label", compared=False),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    bound="two look-ups in the tokenizer's offsets a turn, and a copy of the ids.",
)


def prepare(job: Job) -> None:
    """One conversation of many turns."""
    dice = random.Random(0)
    turns = job.pick(32, 2)
    messages = [
        {"role": ("user", "assistant")[place % 2], "content": text_of(dice, (5, 22)[place % 2])}
        for place in range(2 * turns)
    ]
    write_talks(job.inputs, [{"messages": messages}])


def ours(job: Job) -> dict[str, float]:
    """From text and tokens to labels, as `tokenise` does it, and by the front door."""
    import torch

    from lading.encode import Encoder, TokenisedSample
    from lading.encode.expand import labels_from_spans
    from lading.encode.template import assistant_spans
    from lading.samples import Samples
    from lading.sources import open_corpus
    from lading.vlm.collate_fns import build_labels_from_template

    encoder = Encoder.of(str(processor_folder(job)))
    samples = Samples(corpus=open_corpus(job.inputs / "meta.json"), encoder=encoder)
    (tokenised,) = samples.tokenised([0])
    assert isinstance(tokenised, TokenisedSample)
    tokeniser, talk, text, ids = encoder.facts.tokeniser, tokenised.conversation, tokenised.text, tokenised.ids
    (encoded,) = tokeniser.encode_texts([text])
    marks = {kind: medium.mark for kind, medium in tokeniser.media.items()}

    def find() -> object:
        spans = assistant_spans(text, talk, tokeniser.turns, marks)
        return labels_from_spans(ids, [encoded.token_span(*span) for span in spans])

    assert (find() == tokenised.labels).all()
    messages = samples.corpus.row(0).value["messages"]
    batch = torch.from_numpy(ids)[None]
    by_door = build_labels_from_template(batch, [messages], encoder.facts.processor)
    assert by_door[0].tolist() == tokenised.labels.tolist()
    return {
        "seconds": median_seconds(find, 50),
        "front_door": median_seconds(
            lambda: build_labels_from_template(batch, [messages], encoder.facts.processor), 20
        ),
        "labelled": tokenised.length.label_tokens,
    }


def theirs(job: Job) -> dict[str, float]:
    """From ids to labels, by the markers in them."""
    from nemo_automodel.components.datasets.vlm.collate_fns import build_labels_from_template

    processor = reference.load_processor(processor_folder(job))
    samples = reference.tokenised(job.inputs / "meta.json", processor)
    ids, talks = samples[0]["input_ids"][None], [samples.dataset[0]["conversation"]]
    labels = build_labels_from_template(ids, talks, processor)
    seconds = median_seconds(lambda: build_labels_from_template(ids, talks, processor), 20)
    return {"seconds": seconds, "front_door": seconds, "labelled": int((labels != -100).sum())}
