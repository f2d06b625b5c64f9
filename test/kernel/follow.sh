# Follows what a cgroup of this node has, many times a second. Arguments: what
# to do ("start", "stop"), and the cgroup. Stop prints "TIME CPUS MEMS PARTITION"
# for every change, with the uptime in seconds and - for what cannot be read, and
# "TIME end".
log=/dra-numa-follow # not every image has /tmp

start() {
	stop >/dev/null 2>&1
	cd "/proc/1/root/sys/fs/cgroup$1" || return
	rm -f $log.stop $log.done
	: >$log || return
	{ follow; } >$log 2>/dev/null </dev/null & # a group, so that nothing holds our caller's output
}

follow() {
	last=
	while [ ! -e $log.stop ]; do
		cpus= mems= partition=
		read -r cpus <cpuset.cpus.effective
		read -r mems <cpuset.mems.effective
		read -r partition <cpuset.cpus.partition
		state="${cpus:--} ${mems:--} ${partition:--}"
		if [ "$state" != "$last" ]; then
			read -r now rest </proc/uptime
			echo "$now $state"
			last=$state
		fi
		sleep 0.02
	done
	read -r now rest </proc/uptime
	echo "$now end"
	: >$log.done
}

stop() {
	[ -e $log ] || return 0
	: >$log.stop
	tries=0
	until [ -e $log.done ] || [ $tries -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	cat $log
	rm -f $log $log.stop $log.done
}

"$@"
