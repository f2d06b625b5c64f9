# Counts the switches to each task on some CPUs of this node, as the kernel's scheduler makes them, and prints which
# tasks that were. The kernel keeps the count, a line a task (Documentation/trace/histogram.rst): what is read is short
# however long it took. Arguments: what to do ("start", "list", "stop", "end"), and for start the CPUs.
#
# The first start also makes the instance $held, which uses the event and records nothing, until end. The kernel patches
# its scheduler when the first user of the event comes and when the last one goes. An emulated CPU may then still run
# the breakpoint of the patch ("Oops: int3" in __schedule), and the kernel of the node panics.
tracing=/sys/kernel/tracing
instance=$tracing/instances/dra-numa-test
held=$tracing/instances/dra-numa-held
tasks=8192

hold() {
	[ -d $held ] || mkdir $held && echo 8 >$held/buffer_size_kb &&
		echo 'next_pid < 0' >$held/events/sched/sched_switch/filter && echo 1 >$held/events/sched/sched_switch/enable
}

stop() {
	[ ! -d "$instance" ] || rmdir "$instance"
}

end() {
	stop
	[ ! -d $held ] || { echo 0 >$held/events/sched/sched_switch/enable && rmdir $held; }
}

# start begins with an empty record.
start() {
	[ -d $tracing/instances ] || mount -t tracefs tracefs $tracing || return
	stop && hold && mkdir $instance || return
	watched=
	for cpu; do watched="$watched${watched:+ || }CPU == $cpu"; done
	echo "hist:keys=next_pid,next_comm:size=$tasks if next_pid != 0 && ($watched)" >$instance/events/sched/sched_switch/trigger
}

# list prints "lost TASKS" and "task ID FLAGS CGROUP NAME" for every task but the idle ones; FLAGS and CGROUP are - of
# a task that is gone.
list() {
	awk '/^[{] next_pid:/ {
		name = $0
		sub(/^.*, next_comm: /, "", name)
		sub(/ *[}] hitcount: *[0-9]+ *$/, "", name)
		print "task", $3 + 0, name
	}
	$1 == "Dropped:" { print "lost", $2 }' $instance/events/sched/sched_switch/hist | while read -r kind id name; do
		[ "$kind" = task ] || { echo "$kind $id"; continue; }
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
