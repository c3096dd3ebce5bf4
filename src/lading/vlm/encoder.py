"""One example → the tensors of one sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lading.encode.processor_facts import Border
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Document, Encoded
from lading.samples.samples import Samples
from lading.sources import Corpus

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoder:
    """Tokenises conversations for one processor; those longer than `max_length` are refused."""

    border: Border
    max_length: int | None = None

    def encode(self, conversation: Conversation) -> Encoded:
        """The sample with all its tensors, or `SkipSample`."""
        encoded = Samples(corpus=Corpus.of(()), border=self.border).encode_conversation(conversation)
        tokens = encoded.document.tokens
        if self.max_length is not None and tokens > self.max_length:
            raise SkipSample(
                Reason.TOO_LONG,
                found=f"{tokens} tokens, media included",
                wanted=f"at most {self.max_length} (max_length)",
                where=conversation.key.where,
            )
        return encoded


class SampleInputs(dict[str, "Tensor"]):
    """The tensors of one sample by name, with the document they belong to: its counts travel with it."""

    document: Document


def as_inputs(encoded: Encoded) -> SampleInputs:
    """A sample for a collate function: `input_ids`, `attention_mask` and `labels` [T], and its media tensors."""
    import torch

    ids = encoded.tensors["input_ids"]
    inputs = SampleInputs(input_ids=ids, attention_mask=torch.ones_like(ids))
    inputs.update({name: tensor for name, tensor in encoded.tensors.items() if name != "input_ids"})
    inputs.document = encoded.document
    return inputs
