"""The embedded default: small but real processors, models and data, made on the spot, offline.

    processor("qwen2_5_vl")   transformers' own processor class over a BPE tokenizer trained here
    model("qwen2_5_vl", …)    transformers' own model class, small, with random weights
    fitted("qwen2_5_vl", p)   the same for a processor of your own
    write_corpus(folder)      drawn pictures, an encoded clip, text-only talks, several turns

`--processor toy:qwen2_5_vl`, the demo and the tests use it. Nothing is downloaded and nothing copied is shipped.
"""

from lading.toy.corpus import write_corpus
from lading.toy.recipes import fitted, model, processor, recipes

__all__ = ["fitted", "model", "processor", "recipes", "write_corpus"]
