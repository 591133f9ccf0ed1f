import pytest

from starforge_rewards.server.console.theme import PALETTE, TEXT_ON


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("text", "ground"), TEXT_ON)
def test_every_text_can_be_read_on_its_ground(text: str, ground: str) -> None:
    assert contrast(PALETTE[text], PALETTE[ground]) >= 4.5


def test_what_can_be_filled_in_has_an_edge_that_is_seen() -> None:
    assert contrast(PALETTE["edge"], PALETTE["paper"]) >= 3
