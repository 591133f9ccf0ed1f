"""The console's colours: Okabe and Ito's, darkened where they carry text.

They are told apart with any colour vision, text on them has a contrast of at least 4.5, and nothing
is said by colour alone.
"""

from pathlib import Path
from typing import Final

PALETTE: Final = {
    "ink": "#1c2733",
    "quiet": "#51606f",  # secondary text
    "line": "#d5dce3",
    "edge": "#7a8794",  # of what can be filled in
    "paper": "#ffffff",
    "panel": "#f5f7f9",
    "bar": "#14293d",
    "on-bar": "#ffffff",
    "accent": "#005f96",  # Okabe-Ito blue, darker
    "accent-soft": "#e3eff7",
    "wrong": "#a33b00",  # Okabe-Ito vermillion, darker
    "wrong-soft": "#fdeee5",
    "right": "#00664b",  # Okabe-Ito bluish green, darker
    "right-soft": "#e3f4ee",
    "advice": "#725a00",  # Okabe-Ito yellow, darker
    "advice-soft": "#fdf6d8",
}
TEXT_ON: Final = (
    *(("ink", on) for on in ("paper", "panel", "accent-soft", "wrong-soft", "right-soft")),
    ("ink", "advice-soft"),
    *(("quiet", on) for on in ("paper", "panel")),
    *(("accent", on) for on in ("paper", "panel", "accent-soft")),
    ("wrong", "paper"),
    ("wrong", "wrong-soft"),
    ("right", "right-soft"),
    ("advice", "advice-soft"),
    ("on-bar", "bar"),
    ("paper", "accent"),
)
"""Every pair of text and ground that the pages use."""
_COLOURS = ";".join(f"--{name}:{value}" for name, value in PALETTE.items())
STYLE: Final = f":root{{{_COLOURS}}}\n" + Path(__file__).with_name("console.css").read_text(
    encoding="utf-8"
)
"""The one stylesheet."""
