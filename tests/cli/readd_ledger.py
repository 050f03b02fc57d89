"""Opens the run file of a real run with h5py and pandas, and adds every ledger up again in exact integers.

usage: readd_ledger.py RUN.h5
"""
import sys

import h5py
import pandas as pd


def exact(group):
    return [int(high) * 2**64 + int(low) for high, low in zip(group["gpu_ns_high"][:], group["gpu_ns_low"][:])]


with h5py.File(sys.argv[1], "r") as file:
    assert file.attrs["run_state"].decode() == "complete", file.attrs["run_state"]
    cluster = file["cluster/ledger"]
    total = int(cluster.attrs["gpus"]) * int(cluster.attrs["duration_ns"])
    assert sum(exact(cluster)) == total, "the cluster's accounts are not GPUs x time"

    jobs = [sum(exact(job["ledger"])) for job in file["jobs"].values()]
    assert 0 < sum(jobs) <= total, "jobs held more than there is"

    segments = file["jobs/llama/segments"]
    frame = pd.DataFrame({name: segments[name][:] for name in ("start_ns", "end_ns", "steps")})
    assert (frame["end_ns"] >= frame["start_ns"]).all() and (frame["start_ns"].diff().dropna() >= 0).all()

    struck = len(file["jobs/llama/interruptions/time_ns"])
    kinds = file["log/kinds"].asstr()[:]
    events = pd.DataFrame(file["log/events"][:])
    assert struck == int(file["summary"].attrs["jobs.llama.interruptions"]) > 0
    causes = events["cause"]
    assert (causes < events.index).all(), "an effect comes before its cause"
    print(f"{len(events)} events of {len(kinds)} kinds, {struck} interruptions, {total} GPU-ns: the ledger adds up")
