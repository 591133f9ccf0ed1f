"""Scores one pasted answer with a draft, on the server's judge. Nothing of it is recorded.

A judgement that failed is shown by its cause, and never as a number.
"""

from collections.abc import Sequence

from nicegui import ui
from pydantic import ValidationError

from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.rubrics.ref import ResolvedRubric
from starforge_rewards.rubrics.weighted import CriterionScore, Rubric, Score, Unscored, levels_of
from starforge_rewards.scoring import score
from starforge_rewards.server.console.draft import Draft
from starforge_rewards.server.console.elements import block, cell, row, symbol, table, words
from starforge_rewards.server.console.figures import exact, number
from starforge_rewards.server.console.notice import Notice
from starforge_rewards.server.console.session import Visit


class TryIt:
    """The panel."""

    def __init__(self, visit: Visit, draft: Draft) -> None:
        self._visit, self._draft = visit, draft
        with block("sf-card", "section").props("aria-label=Try"):
            words("h2", "Try it")
            words("p", "Scores the text as it stands here: unversioned, not recorded.", "sf-hint")
            self._prompt = _area("Prompt")
            self._response = _area("Answer")
            self._reference = _area("Reference (optional)")
            self._button = ui.button("Score", icon="balance", on_click=self._try)
            self._button.props("outline no-caps")
            self._notice = Notice()
            self._result = block().props("aria-live=polite")

    async def _try(self) -> None:
        self._result.clear()
        self._button.props("loading")
        try:
            with self._notice.telling():
                await self._score()
        finally:
            self._button.props(remove="loading")

    async def _score(self) -> None:
        user = await self._visit.still()
        rubric = self._draft.check()
        if not isinstance(rubric, Rubric):
            raise InputError("The rubric has fields that cannot be used: correct them first.")
        rollout = self._rollout()
        state = self._visit.state
        judge = await state.judge.opened()
        state.buckets.take(user.owner, 1)
        result = (await score(ResolvedRubric.pin(rubric), [rollout], judge))[0]
        outcome = "scored" if isinstance(result, Score) else "unscored"
        state.metrics.judged.labels(outcome).inc()
        if not self._result.is_deleted:  # whoever asked may have left meanwhile
            with self._result:
                _show(rubric, result)

    def _rollout(self) -> Rollout:
        try:
            return Rollout(
                prompt=self._prompt.value or "",
                response=self._response.value or "",
                reference=self._reference.value or None,
            )
        except ValidationError as error:
            raise InputError.of(error) from None


def _area(label: str) -> ui.textarea:
    return ui.textarea(label).props("outlined dense autogrow rows=2 debounce=150")


def _show(rubric: Rubric, result: Score | Unscored) -> None:
    match result:
        case Score():
            with block("sf-total"):
                words("b", number(result.total))
                words("span", f"on {exact(rubric.scale_min)} to {exact(rubric.scale_max)}")
                words("span", f"normalized {number(result.normalized)}", "sf-quiet")
            if result.decided == "empty_response":
                words("p", "The answer is empty: the least of the scale, by rule.", "sf-hint")
            _criteria(rubric, result.criteria)
            for name, cause in result.unanswered.items():
                words("p", f"{name} has no answer: {cause}. Its weight is zero.", "sf-hint")
        case Unscored():
            with block("sf-notice sf-wrong").props("role=alert"):
                symbol("error")
                with block("sf-said"):
                    words("p", f"No score: {result.cause}")
                    words("p", result.detail)
            _criteria(rubric, result.answered)


def _criteria(rubric: Rubric, answered: dict[str, CriterionScore]) -> None:
    if not answered:
        return
    labels = [choice.label for choice in levels_of(rubric)]
    with table("Criteria", "Criterion", "Value"):
        for name, each in answered.items():
            with row():
                with cell("Criterion"):
                    words("b", name)
                    _grounds(labels, each)
                cell("Value", number(each.value), "sf-number")


def _grounds(labels: Sequence[str], each: CriterionScore) -> None:
    if each.probabilities is not None:
        pairs = zip(labels, each.probabilities, strict=True)
        words("div", "  ".join(f"{label}: {p:.2f}" for label, p in pairs), "sf-hint sf-prose")
    words("div", each.reason or "No reason given.", "sf-hint sf-break")
