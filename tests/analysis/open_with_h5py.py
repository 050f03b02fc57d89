"""Opens a run file with h5py and pandas, and with xarray where it is installed, without our code.

usage: open_with_h5py.py FILE [--state complete]

This is also the example of docs/guide/run-file.md: what the guide says must work here.
"""
import argparse

import h5py
import pandas as pd


def text(value):
    """Text in a run file has a fixed length; h5py hands it over as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def table(group):
    """One row a row, columns in the order they were declared."""
    frame = pd.DataFrame({name: column[:] for name, column in group.items()}).set_index("row")
    for name, column in group.items():
        if column.dtype.kind == "S":
            frame[name] = frame[name].str.decode("utf-8")
    return frame


def events(file):
    frame = pd.DataFrame(file["log/events"][:])
    kinds = file["log/kinds"].asstr()[:]
    subjects = file["log/subjects"].asstr()[:]
    phases = {number: name for name, number in h5py.check_enum_dtype(file["log/events"].dtype["phase"]).items()}
    frame["kind"] = kinds[frame["kind"]]
    frame["subject"] = subjects[frame["subject"]]
    frame["phase"] = frame["phase"].map(phases)
    return frame


def check_ledger(file):
    group = file["jobs/llm/ledger"]
    ledger = table(group)
    exact = [int(high) * 2**64 + int(low) for high, low in zip(ledger["gpu_ns_high"], ledger["gpu_ns_low"])]
    assert sum(exact) == int(group.attrs["gpus"]) * int(group.attrs["duration_ns"]), "ledger does not add up"
    assert max(exact) > 2**64, "the sample should need more than 64 bits"
    for seconds, ns in zip(ledger["gpu_s"], exact):
        assert abs(seconds - ns / 1e9) <= 1e-15 * seconds, "gpu_s differs from the exact amount"
    assert list(ledger.columns) == ["account", "gpu_ns_high", "gpu_ns_low", "gpu_s"]
    assert list(ledger["account"][:2]) == ["useful", "bubble"]


def check_links(file):
    """The busiest link of each distinct step, and who loads it most."""
    loads = table(file["jobs/llm/link_loads"])
    users = table(file["jobs/llm/link_users"])
    links = table(file["fabric/links"])
    busiest = loads.loc[loads.groupby("profile")["utilisation"].idxmax()]
    worst = busiest.merge(users, on=["profile", "link"], suffixes=("", "_of_user")).groupby("profile").first()
    assert list(worst["name"]) == ["leaf-0 -> spine-1"] * 2
    assert list(worst["share"]) == [0.75, 0.75] and worst["user"][0].startswith("llm: dp stage 0, node-0/gpu-0")
    assert list(links["name"][busiest["link"]]) == list(busiest["name"])
    assert worst["capacity"][1] == links["capacity"][1] / 2, "degraded in the second step"
    assert text(file["jobs/llm/link_loads/capacity"].attrs["units"]) == "B/s"
    steps = table(file["jobs/llm/step_profiles"])["step_ns"][loads["profile"]].to_numpy() * 1e-9
    assert abs(loads["utilisation"] - loads["bytes"] / (loads["capacity"] * steps)).max() < 1e-12


def check_with_xarray(path):
    try:
        import h5netcdf  # noqa: F401
        import xarray
    except ImportError:
        return "without xarray"
    power = xarray.open_dataset(path, engine="h5netcdf", group="series/cluster_power")
    assert power["value"].dims == ("time_ns",) and power["value"].attrs["units"] == "W"
    assert power["value"].sel(time_ns=0, method="nearest") == power["value"][0]
    ledger = xarray.open_dataset(path, engine="h5netcdf", group="jobs/llm/ledger")
    assert ledger["gpu_s"].dims == ("row",)
    return "with xarray"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("file")
    options.add_argument("--state", default="complete")
    arguments = options.parse_args()
    with h5py.File(arguments.file, "r") as file:
        assert text(file.attrs["schema_name"]) == "trainyard-run"
        assert text(file.attrs["schema_version"]) == "1.0"
        assert text(file.attrs["run_state"]) == arguments.state
        assert int(file.attrs["seed"]) == 1

        log = events(file)
        assert len(log) == 500 and log["time_ns"].is_monotonic_increasing
        assert set(log["phase"]) == {"failure", "completion", "arrival", "decision", "observation"}
        assert set(log["kind"]) == {"gpu failed", "checkpoint saved", "job restarted"}
        assert log["subject"].str.startswith("node-").all()
        assert (log["cause"] < log.index).all()

        for name in ("cluster_power", "jobs/llm/step_time"):
            series = file["series"][name]
            assert len(series["time_ns"]) == len(series["value"]) > 0
            assert text(series["time_ns"].attrs["units"]) == "ns"
        assert text(file["series/cluster_power/value"].attrs["units"]) == "W"

        extra = "no results"
        if arguments.state == "complete":
            check_ledger(file)
            saves = table(file["jobs/llm/checkpoints"])
            assert len(saves) == 1500 and saves["level"][0] == "parallel store, off-site"
            assert len(table(file["jobs/llm/interruptions"])) == 0
            check_links(file)
            assert file["summary"].attrs["jobs.llm.goodput"] == 0.9125
            extra = check_with_xarray(arguments.file)
    print("opened", arguments.file, extra)


if __name__ == "__main__":
    main()
