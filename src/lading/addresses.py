"""Addresses of stores and of the hub, told from local paths by their form. Nothing is read from or written to one.

>>> address_of("s3://bucket/talks.jsonl"), address_of("s3:/bucket/talks.jsonl"), address_of("talks.jsonl")
('s3://bucket/talks.jsonl', 's3://bucket/talks.jsonl', '')
>>> refuse_address("gs://bucket/talks.jsonl", wanted="a corpus")
Traceback (most recent call last):
    ...
lading.errors.ConfigError: found the Google Cloud Storage address gs://bucket/talks.jsonl; wanted a corpus on a local …
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from lading.errors import ConfigError

S3, GOOGLE, AZURE, HUB, WEB = "S3", "Google Cloud Storage", "Azure Storage", "Hugging Face hub", "web"
STORES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), S3),
    **dict.fromkeys(("gs", "gcs"), GOOGLE),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "adl", "wasb", "wasbs"), AZURE),
    "hf": HUB,
    **dict.fromkeys(("http", "https"), WEB),
    **{scheme: scheme.upper() for scheme in ("ftp", "ftps", "sftp", "ssh", "hdfs", "webhdfs", "oss", "cos", "dbfs")},
    "file": "file",
}
"""What is behind an address, by how it begins."""
TOOLS: Final[Mapping[str, str]] = {
    S3: "aws s3 cp",
    GOOGLE: "gcloud storage cp",
    AZURE: "azcopy copy",
    HUB: "hf download, or huggingface_hub.snapshot_download",
    WEB: "curl -O",
}
"""What copies from there."""
HAVE_IDS: Final = ("a processor", "a model")
"""What is loaded by its id on the hub, too."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)(.*)", re.DOTALL)
_OF_HUB = re.compile(r"(?:hf:/+|https?:/+(?:www\.)?(?:huggingface\.co|hf\.co)/)(datasets/)?([\w.-]+/[\w.-]+)")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def address_of(place: str | os.PathLike[str]) -> str:
    """The address that is meant, or nothing where it is a path. A `Path` of an address has lost one of its slashes."""
    found = _ADDRESS.match(os.fspath(place))
    if found is None:
        return ""
    scheme, slashes, rest = found.groups()
    if slashes == "/" and (scheme.lower() not in STORES or os.path.lexists(f"{scheme}:")):
        return ""  # a folder whose name ends in a colon
    return f"{scheme}:{'///' if slashes == '/' and scheme.lower() == 'file' else '//'}{rest}"


def kind_of(address: str) -> str:
    """What to call an address: `the S3 address`."""
    scheme = address.partition(":")[0]
    return f"the {STORES.get(scheme.lower(), scheme)} address"


def hub_id_in(address: str) -> tuple[str, bool]:
    """The id in an address of the Hugging Face hub, and whether it is a data set's.

    >>> hub_id_in("https://huggingface.co/datasets/somebody/scans/tree/main"), hub_id_in("hf://Qwen/Qwen3-VL")
    (('somebody/scans', True), ('Qwen/Qwen3-VL', False))
    """
    found = _OF_HUB.match(address)
    return ("", False) if found is None else (found[2], found[1] is not None)


def may_be_hub_id(place: str | os.PathLike[str]) -> bool:
    """Whether this has the form of an id on the hub (`somebody/scans`); a relative path may have it, too."""
    return _HUB_ID.fullmatch(os.fspath(place)) is not None


def how_to_read_hub(name: str) -> str:
    """What to do with the id of a data set, where a path was expected."""
    return f'pass datasets.load_dataset("{name}", split="train"), or name it in a meta file: {{"hf_hub_url": "{name}"}}'


def refuse_address(place: str | os.PathLike[str], *, wanted: str) -> None:
    """Refuse an address where a local path of something that is read belongs."""
    address = address_of(place)
    if not address:
        return
    name, of_data = hub_id_in(address)
    if address.startswith("file:"):
        advice = f"give the path itself: {address.removeprefix('file://')}"
    elif name and of_data:
        advice = f"to read the data set from the hub, {how_to_read_hub(name)}"
    elif name and wanted in HAVE_IDS:
        advice, wanted = f'give the id alone: "{name}"', f"{wanted} by its id on the hub, or"
    else:
        advice = f"addresses are not read yet: {how_to_copy(address)}"
    raise ConfigError(found=f"{kind_of(address)} {address}", wanted=f"{wanted} on a local disk", consequence=advice)


def how_to_copy(address: str) -> str:
    """How to have on disk what is behind an address."""
    tool = TOOLS.get(STORES.get(address.partition(":")[0].lower(), ""))
    return "copy it to a local disk, or mount the store, and give that path" + (f" ({tool})" if tool else "")


def refuse_writing_to_address(place: str | os.PathLike[str]) -> None:
    """Refuse an address where something is to be written: a local folder of that odd name would be made."""
    if address := address_of(place):
        raise ConfigError(
            found=f"{kind_of(address)} {address}",
            wanted="a place on a local disk to write to",
            consequence="nothing is written to addresses yet: write to a local disk, and copy it from there",
        )
