"""Rows of well-known data sets → `Conversation`. Pure functions on one row; nothing is opened.

| file | columns | what the model is asked |
| --- | --- | --- |
| `rdr` | `image`, `text` | to describe the picture |
| `cord_v2` | `image`, `ground_truth` | to write the receipt down as tokens |
| `medpix` | `image_id`, `question`, `answer` | the row's own question |
| `cv17` | `audio`, `transcription` | to write down what is said |
| `unimm_chat` | `image`, `conversation` | what people said, with `<image>` marks between their words |

Each has `COLUMNS` (what it reads) and `read(row, …)`. `columns` holds what they share.
"""
