#!/bin/sh
# Makes the archive of a filled installation that the upgrade test restores: documents that are done, and jobs that wait.
#   tools/make_upgrade_data.sh PYTHON FOLDER tests/data/backup-VERSION.tar.xz
# PYTHON is the Python of an environment with the version to keep; FOLDER is a new folder for its data.
set -eu
python=$1 folder=$2 archive=$(realpath "$3")
mkdir "$folder" && cd "$folder"
export OCTAVO_DATA_DIR="$folder/data" OCTAVO_PORT=8493 OCTAVO_WEB=1
octavo() { "$python" -m octavo "$@"; }
start() {
    OCTAVO_WORKERS=$1 octavo up >up.log 2>&1 &
    for _ in $(seq 600); do if grep -q 'Ctrl-C stops' up.log; then return; fi; sleep 0.2; done
    exit 1
}
samples=$("$python" -c 'import octavo, pathlib; print(pathlib.Path(octavo.__file__).parent / "web/rooms/library/samples")')
start 1
octavo add "$samples"/How*.md "$samples"/Interview*.txt "$samples"/Letter*.txt --wait
id=$(octavo ls --json | "$python" -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["id"])')
octavo edit "$id" --title "A kept title" --tag peat --tag upgrade --collection Moor
octavo ask "How does a bog keep its rain?" >/dev/null
octavo stop
start 0 # no workers: from here on, jobs wait
for number in 1 2 3; do
    printf '# Waiting %s\n\nThe heron number %s waits for the ferry at the northern pier.\n' "$number" "$number" >"waiting-$number.md"
done
octavo add waiting-1.md waiting-2.md waiting-3.md
octavo jobs add demo --count 5 --input '{"stages": 2, "seconds": 0}'
octavo backup "$folder/backup"
octavo stop
tar --sort=name --owner=0 --group=0 --numeric-owner -cJf "$archive" backup
