"""One turn of a conversation is its text: a judge sees a rollout alike, however a trainer wraps it.

Without this a chat dataset and a plain one would put two different texts before the judge.
"""

from starforge_rewards.conversation import Content, Role
from starforge_rewards.training.reward import Item


def unwrapped(item: Item) -> Item:
    """The same rollout, with a single turn of the user's, or of the policy's, as a text."""
    prompt = _text(item.row.prompt, "user")
    row = item.row if prompt is item.row.prompt else item.row.model_copy(update={"prompt": prompt})
    return Item(row, _text(item.response, "assistant"))


def _text(content: Content, role: Role) -> Content:
    if isinstance(content, str) or len(content) != 1:
        return content if content else ""
    turn = content[0]
    return turn.content if turn.role == role and not turn.tool_calls else content
