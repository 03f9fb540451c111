"""The reading model: one small encoder that reads a question and a passage together. It is optional.

`encoding` makes the model's input, `model` loads it and scores, `queue` says who may wait for it. Here the model that
the settings name is found.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import ConfigurationError

if TYPE_CHECKING:
    from chapterverse.reading.model import ReadingModel

#: The import package of the distribution `chapterverse-reading`.
PACKAGE = "chapterverse_reading"
#: A file with the SHA-256 of each of the model's files and its name, as `sha256sum` writes it.
_CHECKSUMS = "SHA256SUMS"


def open_reading_model(setting: str) -> ReadingModel | None:
    """Return the reading model; None if there is none to use.

    Args:
        setting: `auto` for the installed one, if there is any; `none`; or a folder.

    Raises:
        ConfigurationError: a file is missing, or is not what the model's own list says, or onnxruntime is missing. With
            `auto` the last means that there is no model.
    """
    if setting == "none":
        return None
    folder = _find_installed() if setting == "auto" else Path(setting).expanduser()
    if folder is None or (setting == "auto" and find_spec("onnxruntime") is None):
        return None
    checksum = _check(folder)
    # Lazy: the runtime takes a quarter of a second to import.
    from chapterverse.reading.model import ReadingModel

    return ReadingModel(f"{PACKAGE}/{checksum[:12]}", folder)


def _find_installed() -> Path | None:
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else None


def _check(folder: Path) -> str:
    """Return the checksum of the files' list, once all are what it says: half a file, or one of another version, is no
    model.
    """
    try:
        listed = (folder / _CHECKSUMS).read_bytes()
        for checksum, name in (line.split(maxsplit=1) for line in listed.decode().splitlines()):
            with (folder / Path(name).name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                    raise ConfigurationError(
                        f"{name} of the reading model in {folder} is damaged, or of another version: install the model "
                        "again, or set CHAPTERVERSE_READING_MODEL=none."
                    )
        return hashlib.sha256(listed).hexdigest()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"There is no whole reading model in {folder} ({error}): install chapterverse-reading, or set "
            "CHAPTERVERSE_READING_MODEL=none."
        ) from None
