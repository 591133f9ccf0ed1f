"""The full text of one version of a rubric, wherever a page shows it."""

import json
from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from starforge_rewards.rubrics.weighted import Criterion, Rubric, levels_of
from starforge_rewards.server.console.elements import block, cell, facts, row, table, words
from starforge_rewards.server.console.figures import exact


def show_text(body: Mapping[str, JsonValue], name: str) -> None:
    """Everything that a version says; `name` tells its table from others on the page."""
    try:
        rubric = Rubric.model_validate(body)
    except ValidationError:  # of a kind that this release does not know
        words("pre", json.dumps(body, indent=2, ensure_ascii=False), "sf-code")
        return
    if rubric.description:
        words("p", rubric.description, "sf-prose")
    labels = [choice.label for choice in levels_of(rubric)]
    scale = f"{exact(rubric.scale_min)} to {exact(rubric.scale_max)}"
    facts({"Scale": scale, "Answers": ", ".join(labels)})
    positive = sum(each.weight for each in rubric.criteria if each.weight > 0)
    with table(f"Criteria of {name}", "Criterion", "Weight", "Share", "Instruction"):
        for criterion in rubric.criteria:
            _criterion(criterion, criterion.weight / positive)


def _criterion(criterion: Criterion, share: float) -> None:
    with row():
        cell("Criterion", criterion.name, "sf-name")
        cell("Weight", exact(criterion.weight), "sf-number")
        cell("Share", f"{share:.0%}", "sf-number")
        with cell("Instruction", classes="sf-wide"):
            words("span", criterion.description, "sf-prose")
            if criterion.anchors:
                with block("sf-anchors", "dl"):
                    for label, meaning in criterion.anchors.items():
                        words("dt", label)
                        words("dd", meaning)
