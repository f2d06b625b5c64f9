package kubeletplugin

import (
	"errors"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// A fault that comes and goes must not keep the API server busy. The first changes are
// written at once, later ones wait: a node gives something new in its ResourceSlices at most
// 6 times in any minute, creates at most 20 events, and writes the status of each claim at
// most 12 times. What a node takes back does not wait: see withdrawn.
const (
	sliceBurst, slicesPerSecond    = 4, 2.0 / 60
	eventBurst, eventsPerSecond    = 10, 10.0 / 60
	statusBurst, statusesPerSecond = 6, 6.0 / 60
)

// The order of zones follows what claims hold, and each write of a ResourceSlice wakes the pods
// that wait for devices. So a new order that comes alone has a pace of its own: four are written
// at once, and then one in orderPeriod.
const (
	orderBurst  = 4
	orderPeriod = 15 * time.Second
)

// errTooManyEvents says that the node has created its share of events.
var errTooManyEvents = errors.New("too many events in the last minute")

// pace says whether one more is allowed now.
type pace = flowcontrol.PassiveRateLimiter

func slicePace() pace {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(slicesPerSecond, sliceBurst)
}

func orderPace() pace {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(float32(1/orderPeriod.Seconds()), orderBurst)
}

func statusPace() pace {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(statusesPerSecond, statusBurst)
}

func eventPace() pace {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(eventsPerSecond, eventBurst)
}
