"""Answers one question in a separate process with limited memory, which can be killed at any time.

The process reads the question from stdin, and writes the answer to stdout, both as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from harness.base.confined import limit_memory
from harness.base.errors import HarnessError
from harness.cli.screen import results_only
from harness.cli.tool_server.folders import Folders

_LARGEST_TEXT = 200_000
_LARGEST_DOCUMENT = 4_000_000


def main() -> None:
    """Read the question, and write the answer."""
    question = json.load(sys.stdin)
    limit_memory(question["memory"])
    with results_only():
        answered = answer(question)
    json.dump(answered, sys.stdout)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Returns a `text` and a `document`, or an `error` in words."""
    from harness.cli.tool_server.questions import TOOLS

    try:
        folders = Folders([Path(root) for root in question["folders"]])
        text, document = TOOLS[question["tool"]](folders, **question["arguments"])
    except HarnessError as error:
        hint = f"\nHint: {error.hint}" if error.hint else ""
        return {"error": f"{error.message}{hint}"}
    except (MemoryError, RecursionError):
        return {"error": "there is not enough memory for this question"}
    except Exception as error:  # Tell the client about the defect, but reveal no text that might be secret.
        return {"error": f"a bug in harness ended the question: {type(error).__name__}"}
    if len(json.dumps(document)) > _LARGEST_DOCUMENT:
        return {"error": "the answer is too large; ask about fewer jobs, or a shorter time"}
    shown = text if len(text) <= _LARGEST_TEXT else f"{text[:_LARGEST_TEXT]}\n… the rest is in the document"
    return {"text": shown, "document": document}


if __name__ == "__main__":
    main()
