#!/bin/bash
# Runs the script that `trainyard sweep --slurm` prints on a Slurm of one node that this test starts, and compares the
# merged table with that of one process. Skipped (77) where there is no Slurm, or no root to start it.
#   slurm_test.sh PATH/trainyard STUDY.json
set -eu
trainyard=$1 study=$2
for tool in slurmctld slurmd sbatch munged mungekey; do
  if ! PATH=$PATH:/usr/sbin command -v $tool >/dev/null; then
    echo "skipped: $tool is not installed"
    exit 77
  fi
done
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: only root can start a Slurm daemon"
  exit 77
fi
PATH=$PATH:/usr/sbin
folder=$(mktemp -d)
chmod 755 "$folder"
pids=
finish() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
mkdir state spool log
mungekey --create --keyfile="$folder/munge.key"
munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munged.pid" --log-file="$folder/log/munged" --seed-file="$folder/munge.seed" 2>/dev/null &
pids="$pids $!"
host=$(hostname -s)
cat >slurm.conf <<CONF
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MailProg=/bin/true
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
for _ in $(seq 50); do [ -S munge.socket ] && break; sleep 0.1; done
slurmctld -D -f slurm.conf 2>/dev/null &
pids="$pids $!"
sleep 1
slurmd -D -f slurm.conf 2>/dev/null &
pids="$pids $!"
for _ in $(seq 100); do
  case $(sinfo -h -o %t 2>/dev/null) in idle*) break ;; esac
  sleep 0.2
done
if ! sinfo -h -o %t 2>/dev/null | grep -q idle; then
  echo "skipped: a Slurm of one node does not start here"
  tail -n 5 log/* || true
  exit 77
fi
PATH=$(dirname "$trainyard"):$PATH
export PATH
trainyard sweep "$study" -o one --progress off >/dev/null
trainyard sweep "$study" -o parts --slurm 3 >sweep.sbatch
cat sweep.sbatch
job=$(sbatch --parsable --cpus-per-task=1 --mem-per-cpu=0 sweep.sbatch)
merge=$(sed -n 's/^#   sbatch --dependency=afterok:NUMBER --wrap=//p' sweep.sbatch)
eval "merge=$merge"
last=$(sbatch --parsable --mem=0 --dependency="afterok:$job" --wrap="$merge")
for _ in $(seq 300); do
  [ -z "$(squeue -h -j "$job,$last" 2>/dev/null)" ] && break
  sleep 0.2
done
cat trainyard-*.log
cmp one/study.h5 parts/study.h5
cmp one/table.csv parts/table.csv
echo "an array of three Slurm tasks and one process: the same bytes"
