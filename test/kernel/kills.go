package kernel

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// killsFile has how often KillAtChanges has killed, in the observer.
const killsFile = "/dev/shm/kills"

// KillAtChanges sends SIGKILL to the process of a command name whenever what a shell script
// prints has changed, until it has done so a number of times or the time is over. It returns
// at once; [Observer.Kills] says how often it has. In the script, $root is the node's file
// system.
func (o *Observer) KillAtChanges(ctx context.Context, name, script string, times int, within time.Duration) error {
	_, err := o.Run(ctx, `
		root=$5
		seconds() { cut -d. -f1 /proc/uptime; }
		echo 0 >"$6" || exit 1
		end=$(($(seconds) + $4))
		last=$(eval "$2" 2>&1)
		{
			kills=0
			while [ "$kills" -lt "$3" ] && [ "$(seconds)" -lt "$end" ]; do
				pid=$(pidof "$1") || continue
				while [ -d "/proc/${pid%% *}" ] && [ "$(seconds)" -lt "$end" ]; do
					now=$(eval "$2" 2>&1)
					[ "$now" != "$last" ] || continue
					kill -9 $pid
					last=$now
					kills=$((kills + 1))
					echo "$kills" >"$6"
					break
				done
				while [ -d "/proc/${pid%% *}" ]; do :; done
			done
		} </dev/null >/dev/null 2>&1 &`, name, script, strconv.Itoa(times), strconv.FormatInt(int64(within/time.Second), 10), initRoot, killsFile)
	return err
}

// Kills returns how often KillAtChanges has killed since its last call.
func (o *Observer) Kills(ctx context.Context) (int, error) {
	out, err := o.Run(ctx, `cat "$1"`, killsFile)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}
