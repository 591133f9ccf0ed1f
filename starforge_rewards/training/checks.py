"""Plugin verifiers that ship: checks that need no judge."""

from starforge_rewards.conversation import Rollout
from starforge_rewards.errors import InputError
from starforge_rewards.training.dataset import TaskRow


def within_length(rollout: Rollout, row: TaskRow) -> float:
    """1 for a response of at most `metadata.most_words` words; beyond, most / words: in (0, 1].

    Raises:
        InputError: the row does not say `most_words`, a whole number from 1.
    """
    most = row.metadata.get("most_words")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InputError("must be a whole number from 1", field="metadata.most_words")
    response = rollout.response
    text = response if isinstance(response, str) else " ".join(m.content for m in response)
    words = len(text.split())
    return 1.0 if words <= most else most / words
