"""Attention that sees documents and windows by their boundaries, on torch's own kernels: no mask, and no flash-attn.

    use_varlen(model)           the language model, and a vision tower that can, attend document by document
    align_feed_forward(model)   feed-forwards whose width is no multiple of eight use a GPU's fast kernels

segments  attention over the pieces of one long row, by torch's `varlen_attn` or, where that does not fit, one by one
varlen    the function transformers calls, the boundaries it takes for a mask, and the choice of it for a model
align     the feed-forwards
"""

from lading.attention.align import align_feed_forward
from lading.attention.varlen import LANGUAGE, TOWER, use_varlen

__all__ = ["LANGUAGE", "TOWER", "align_feed_forward", "use_varlen"]
