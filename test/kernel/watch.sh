# Records every switch of a task on some CPUs of this node, as the kernel's
# scheduler makes it, and prints which tasks that were. Arguments: what to do
# ("start", "list", "stop"), the CPUs as a mask, the CPUs one by one.
tracing=/sys/kernel/tracing
instance=$tracing/instances/dra-numa-test

stop() {
	[ ! -d "$instance" ] || rmdir "$instance"
}

# start begins with an empty record. The buffers of the watched CPUs hold some
# 100,000 switches each.
start() {
	[ -d $tracing/instances ] || mount -t tracefs tracefs $tracing || return
	stop || return
	mkdir $instance || return
	mask=$1
	shift
	for cpu; do echo 8192 >"$instance/per_cpu/cpu$cpu/buffer_size_kb" || return; done
	echo "$mask" >$instance/tracing_cpumask || return
	echo 1 >$instance/events/sched/sched_switch/enable
}

# list prints "task ID FLAGS CGROUP NAME" for every task but the idle ones;
# FLAGS and CGROUP are - of a task that is gone.
list() {
	shift
	for cpu; do
		while read -r key value; do
			[ "$key" != overrun: ] || echo "lost $value"
		done <"$instance/per_cpu/cpu$cpu/stats"
	done
	# A name may hold anything: the last mark on the line is the kernel's own.
	awk '/sched_switch:/ {
		for (name = ""; i = index($0, " ==> "); $0 = substr($0, i + 5)) {}
		if (match($0, / next_pid=[0-9]+ next_prio=/)) {
			id = substr($0, RSTART + 10) + 0
			name = substr($0, 11, RSTART - 11)
			if (id && !(id in seen)) { seen[id]; print id, name }
		}
	}' $instance/trace | while read -r id name; do
		flags=- cgroup=-
		{ read -r stat <"/proc/$id/stat"; } 2>/dev/null && {
			set -- ${stat##*) }
			flags=$7
			while read -r line; do
				case $line in 0::*) cgroup=${line#0::} ;; esac
			done <"/proc/$id/cgroup"
		} 2>/dev/null
		echo "task $id $flags $cgroup $name"
	done
}

"$@"
