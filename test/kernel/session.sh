# Runs the scripts that come line by line, each in base64, one after the other and each in a process of its own.
# Answers "STATUS BYTES BYTES", the output and the error output of a script; "ready" first.
# With a weight of 10,000 in a cgroup of their own, the scripts get the CPU before the pods that they observe. Arguments: that
# cgroup, and a folder for files.
{ mkdir -p "$1" && echo 10000 >"$1/cpu.weight" && echo $$ >"$1/cgroup.procs"; } 2>/dev/null
files=$2/dra-numa-observer-$$
trap 'rm -rf "$files"' EXIT
mkdir "$files" && cd "$files" || exit
echo ready
while read -r request; do
	script=$(echo "$request" | base64 -d)
	( eval "$script" ) </dev/null >out 2>err
	status=$?
	echo $status $(stat -c %s out err)
	cat out err
done
