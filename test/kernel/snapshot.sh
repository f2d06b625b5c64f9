# Prints what the kernel of this node says: one "key value" a line, a missing
# file as an empty value. Forks little: forks are slow under emulation. CPU lists
# of sysfs are binary attributes, which read as empty byte by byte: cat reads them.

# show KEY FILE prints the first line of a file.
show() {
	value=
	{ read -r value <"$2"; } 2>/dev/null
	echo "$1 $value"
}

# status PID prints what the kernel lets a process run on and allocate from.
status() {
	while read -r key value; do
		case $key in
		Cpus_allowed_list:) echo "cpus $value" ;;
		Mems_allowed_list:) echo "mems $value" ;;
		esac
	done <"/proc/$1/status"
}

# unified PID sets cgroup to the path of a process in the cgroup v2 tree; of one
# that crun started, to the cgroup of its container, above its own.
unified() {
	cgroup=
	while read -r line; do
		case $line in 0::*) cgroup=${line#0::}; cgroup=${cgroup%/container} ;; esac
	done <"/proc/$1/cgroup"
}

system=/sys/devices/system
show online $system/cpu/online
cat $system/cpu/cpu[0-9]*/topology/thread_siblings_list | while read -r core; do
	echo "core $core"
done
for node in $system/node/node[0-9]*; do
	echo "zone ${node##*/node}"
	echo "zone-cpus $(cat "$node/cpulist")"
	show zone-free-hugepages "$node/hugepages/hugepages-2048kB/free_hugepages"
done

tree=/proc/1/root/sys/fs/cgroup
for file in $(grep -ls kubepods /proc/[0-9]*/cgroup); do
	pid=${file#/proc/}
	pid=${pid%/cgroup}
	unified "$pid"
	[ -n "$cgroup" ] || continue
	echo "process $pid"
	echo "cgroup $cgroup"
	status "$pid"
	show own-cpus "$tree$cgroup/cpuset.cpus"
	show effective-cpus "$tree$cgroup/cpuset.cpus.effective"
	show effective-mems "$tree$cgroup/cpuset.mems.effective"
	show exclusive-cpus "$tree$cgroup/cpuset.cpus.exclusive"
	show partition "$tree$cgroup/cpuset.cpus.partition"
done 2>/dev/null
exit 0
