#!/usr/bin/env python3
"""Runs compare_simgrid again and again and prints the table of median processor times and their ratios.

    compare.py PATH_TO_compare_simgrid [--rounds N] [WORKLOAD ...]

Each round runs every workload once, SimGrid and Trainyard in turn in one process, with a seed of
its own; the ratio is taken within a run and its median and range over the rounds are shown.
"""
import argparse
import csv
import statistics
import subprocess

WORKLOADS = ["poisson-0.50", "poisson-0.25", "poisson-0.10", "dragonfly-4096", "dragonfly-1024",
             "tree-4096-2to1", "tree-8192", "all-to-all-64512", "ring-1024"]
FIELDS = ["workload", "flows", "simgrid_s", "trainyard_s", "connected_s", "plain_s", "difference"]


def ratio_text(rows, over):
    ratios = [float(r[over]) / float(r["trainyard_s"]) for r in rows]
    if ratios[0] != ratios[0]:
        return "-"
    return f"{statistics.median(ratios):.3g} [{min(ratios):.3g}-{max(ratios):.3g}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("workloads", nargs="*", default=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_intermixed_args()
    runs = {}
    for seed in range(1, options.rounds + 1):
        for workload in options.workloads:
            out = subprocess.run([options.program, workload, str(seed)], check=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            for row in csv.DictReader(out.splitlines(), FIELDS):
                runs.setdefault(row["workload"], []).append(row)
    print("| workload | runs | SimGrid, s | Trainyard, s | connected re-solve, s "
          "| plain re-solve, s | SimGrid / Trainyard | connected / Trainyard | plain / Trainyard "
          "| worst finish difference |")
    print("|---" * 10 + "|")
    for workload, rows in runs.items():
        medians = [statistics.median(float(r[f]) for r in rows) for f in FIELDS[2:6]]
        print(f"| {workload} | {len(rows)} | " + " | ".join(f"{m:.3g}" for m in medians) +
              f" | {ratio_text(rows, 'simgrid_s')} | {ratio_text(rows, 'connected_s')} "
              f"| {ratio_text(rows, 'plain_s')} | {max(float(r['difference']) for r in rows):.1e} |", flush=True)


if __name__ == "__main__":
    main()
