#!/bin/sh
# The merged table of a study is the same bytes from one process and from 2, 3 and 4 ranks, also when the ranks go on
# with what another launcher left.
#   mpi_sweep_test.sh PATH/trainyard PATH/trainyard-mpi STUDY.json
set -eu
trainyard=$1 mpi=$2 study=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
run() { mpirun --allow-run-as-root --oversubscribe -np "$@"; }
"$trainyard" sweep "$study" -o one --progress off >/dev/null
for n in 2 3 4; do
  run $n "$mpi" "$study" -o "ranks-$n" >/dev/null
  cmp one/study.h5 "ranks-$n/study.h5"
  cmp one/table.csv "ranks-$n/table.csv"
done
run 3 "$trainyard" sweep "$study" -o static --shard auto --progress off
"$trainyard" sweep "$study" -o static --merge >/dev/null
cmp one/study.h5 static/study.h5
"$trainyard" sweep "$study" -o mixed --shard 1/3 --progress off
run 2 "$mpi" "$study" -o mixed --resume >/dev/null
cmp one/study.h5 mixed/study.h5
if run 2 "$mpi" "$study" -o mixed >/dev/null 2>&1; then
  echo "a folder with results was used without --resume" >&2
  exit 1
fi
echo "one process, 2, 3 and 4 ranks: the same bytes"
