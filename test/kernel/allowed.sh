# Prints which CPUs the tasks of user space on this node may run on, every list
# once: "allowed LIST TASKS ID NAME" with how many tasks have it and one of
# them. Arguments: cgroups to leave out, with all below them.
tree=/proc/1/root/sys/fs/cgroup
own=
for cgroup; do
	own="$own $(find "$tree$cgroup" -name cgroup.threads -exec cat {} + | tr '\n' ' ')"
done
cat /proc/[0-9]*/task/[0-9]*/status 2>/dev/null | awk -v own="$own" '
BEGIN { split(own, ids); for (i in ids) leave[ids[i]] }
$1 == "Name:" { name = $2 }
$1 == "Pid:" { id = $2; kernel = 1 }
$1 == "VmSize:" { kernel = 0 } # only tasks of user space have memory
$1 == "Cpus_allowed_list:" && !kernel && !(id in leave) {
	if (!count[$2]++) { first[$2] = id " " name }
}
END { for (list in count) print "allowed", list, count[list], first[list] }'
