#!/bin/bash
# Records a session in a terminal as a picture, docs/SESSION.svg: record.sh SESSION. The file
# SESSION.sh makes what the session needs, and lists its commands. kubectl numa is bin/kubectl-numa.
#
# The picture begins with the end of the session, which is all that programs show that move no
# pictures. Then it shows command by command. All is run before, so that the picture has the same
# times on a slow machine.
set -euo pipefail

session=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cast=$root/bin/recordings/$session.cast
columns=80

kubectl() {
  shift # numa
  "$root/bin/kubectl-numa" "$@"
}

# show prints what command $1 says, below the command. It waits $2 seconds before and behind.
show() {
  printf '\e[1m$ %s\e[0m\n' "${commands[$1]}"
  sleep "$2"
  cat "$1.txt"
  sleep "$2"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
. "$here/$session.sh"
for i in "${!commands[@]}"; do
  eval "${commands[i]}" >"$folder/$i.txt" 2>&1 || true # a command may answer no
done
cd "$folder"

case ${2-} in
play) # in the terminal that is recorded
  for i in "${!commands[@]}"; do show "$i" 0; done >all.txt
  cat all.txt
  sleep 4
  printf '\e[H\e[2J'
  for i in "${!commands[@]}"; do show "$i" 1; done
  ;;
'')
  command -v termtosvg >/dev/null || apt-get install --yes --no-install-recommends termtosvg
  rows=$((${#commands[@]} + $(cat [0-9]*.txt | fold -w "$columns" | wc -l) + 1))
  mkdir -p "${cast%/*}"
  # termtosvg wants a terminal for itself, too, which script makes.
  script --quiet --return --command "termtosvg record '$cast' -g ${columns}x$rows -c '$here/record.sh $session play'" /dev/null </dev/null >/dev/null
  termtosvg render "$cast" "$root/docs/$session.svg" --template "$here/template.svg" --min-frame-duration 100
  ;;
esac
