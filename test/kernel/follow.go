package kernel

import (
	"context"
	_ "embed" // follow.sh
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed follow.sh
var followScript string

// Period is a time in which a cgroup had the same CPUs, mems and partition.
type Period struct {
	State string // "CPUS MEMS PARTITION", each - if it could not be read
	Time  time.Duration
}

// Follow begins to note what a cgroup, given with a leading slash, effectively
// has, about 30 times a second. Unfollow must be called after use; one cgroup at a time.
func (o *Observer) Follow(ctx context.Context, cgroup string) error {
	if _, err := o.Run(ctx, followScript, "start", cgroup); err != nil {
		return fmt.Errorf("follow cgroup %s: %w", cgroup, err)
	}
	return nil
}

// Unfollow ends what Follow began, and returns the periods since, oldest first.
// There is none where nothing was followed.
func (o *Observer) Unfollow(ctx context.Context) ([]Period, error) {
	text, err := o.Run(ctx, followScript, "stop")
	if err != nil {
		return nil, err
	}
	return parsePeriods(text)
}

// parsePeriods reads the output of follow.sh stop.
func parsePeriods(text string) ([]Period, error) {
	var periods []Period
	var begin float64
	for line := range strings.Lines(text) {
		at, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		now, err := strconv.ParseFloat(at, 64)
		if err != nil || state == "" {
			return nil, fmt.Errorf("parse period %q: want a time and a state", line)
		}
		if last := len(periods) - 1; last >= 0 {
			periods[last].Time = time.Duration((now - begin) * float64(time.Second))
		}
		if begin = now; state != "end" {
			periods = append(periods, Period{State: state})
		}
	}
	return periods, nil
}
