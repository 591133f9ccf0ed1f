"""`python -m tests.performance [name ...]`: runs the measurements and shows one table.

The exit code says whether they ran, not whether the targets were met: a busy machine is no error.
"""

import argparse
import importlib
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.performance.ratio import Ratio

NAMES = (
    "bulk_tally",
    "cached_rescore",
    "replica_scaling",
    "prefix_sharing",
    "pool_overhead",
    "registry_put",
    "registry_listing",
    "registry_resolve",
    "ledger_writes",
    "adapter_time",
    "reward_rubrics",
    "reward_callers",
    "reward_stream",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.performance", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they run")
    parser.add_argument("--json", type=Path, help="also write the ratios to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no measurement is named {', '.join(sorted(unknown))}")
    waiting = Console(stderr=True)
    ratios: list[Ratio] = []
    try:
        for name in arguments.names or NAMES:
            with waiting.status(f"Measuring {name}"):
                # Late: a measurement of arrays loads no engine.
                module = importlib.import_module(f"tests.performance.{name}")
                for ratio in module.measure(quick=arguments.quick):
                    ratios.append(ratio)  # noqa: PERF402 - kept even if the next one crashes
    finally:
        if arguments.json:
            records = [_record(ratio) for ratio in ratios]
            arguments.json.write_text(json.dumps(records, indent=1) + "\n")
        Console(width=140).print(_table(ratios))


def _table(ratios: list[Ratio]) -> Table:
    table = Table("what", "size", "ratio (median of pairs, min-max)", "target", "met")
    for ratio in ratios:
        found = f"{ratio.median:.3g} ({min(ratio.pairs):.3g}-{max(ratio.pairs):.3g})"
        met = {True: "yes", False: "no", None: ""}[ratio.met]
        table.add_row(ratio.what, ratio.size, found, str(ratio.target or "shown"), met)
    return table


def _record(ratio: Ratio) -> dict[str, object]:
    return {
        "what": ratio.what,
        "size": ratio.size,
        "median": ratio.median,
        "pairs": ratio.pairs,
        "target": str(ratio.target) if ratio.target else None,
        "met": ratio.met,
    }


if __name__ == "__main__":
    main()
