"""What MkDocs asks of this project while it builds the site: the pages that are made of the code.

None of them is a file in the repository, so none can be older than the code. (`options.py` makes one that is; a test
compares it.)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from docs.hooks import api, commands, examples, tables


def generated() -> dict[str, str]:
    """Every page that is made of the code, by its place in the site."""
    return {
        "reference/command.md": commands.page(),
        "reference/families.md": tables.families_page(),
        **{f"reference/{name}.md": text for name, text in api.pages().items()},
        examples.PLACE: examples.page(),
        # It lies beside the folder of the pages; in the site it is one of them.
        "changes.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "]("),
    }


def on_config(config: Any) -> Any:
    """Every decision has its place in the menu, without being named in `mkdocs.yml`."""
    folder = Path(config["docs_dir"]) / "adr"
    decisions = [f"adr/{path.name}" for path in sorted(folder.glob("[0-9]*.md"))]
    for section in config["nav"]:
        for entry in section.get("Project", ()):
            if "Decisions" in entry:
                entry["Decisions"] = ["adr/README.md", *decisions]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that no file holds."""
    for place, text in generated().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Links to files that are no pages lead to where the site shows them."""
    del config, files
    return examples.linked(markdown, page.file.src_uri)
