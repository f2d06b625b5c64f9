package kubeletplugin

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

// failing are the claims whose status the API server could not write. It may be overloaded or
// away. Then it gets fewer and fewer requests of the node: one claim at a time is tried again,
// after longer and longer pauses. Or it may be because of the claim, for example if a webhook
// fails for its namespace. So claims that have not failed are written meanwhile, the first
// one at once. Only the goroutine that writes uses it.
type failing struct {
	queue  workqueue.TypedRateLimitingInterface[types.UID]
	claims []types.UID // the first is tried next, when its pause is over
	pauses wait.Backoff
}

func newFailing(queue workqueue.TypedRateLimitingInterface[types.UID]) *failing {
	return &failing{queue: queue, pauses: statusPauses()}
}

// waits reports whether it is another claim's turn.
func (f *failing) waits(claimUID types.UID) bool { return slices.Index(f.claims, claimUID) > 0 }

// failed takes a claim whose write failed because of the API server. Nothing may be written
// until hold is over: that several claims fail in a row is no claim's fault.
func (f *failing) failed(claimUID types.UID) (hold time.Duration) {
	again := f.turn(claimUID)
	f.claims = append(f.claims, claimUID)
	if again || len(f.claims) == 1 {
		f.queue.AddAfter(f.claims[0], f.pauses.Step())
		return 0
	}
	return f.pauses.Step()
}

// answered takes a claim that the API server has answered about.
func (f *failing) answered(claimUID types.UID) {
	f.pauses = statusPauses()
	f.dropped(claimUID)
}

// dropped takes a claim that needed no request. If it was its turn, the next one is tried at
// once.
func (f *failing) dropped(claimUID types.UID) {
	if f.turn(claimUID) && len(f.claims) > 0 {
		f.queue.Add(f.claims[0])
	}
}

// turn ends the turn of a claim, if it was its turn.
func (f *failing) turn(claimUID types.UID) bool {
	if len(f.claims) == 0 || f.claims[0] != claimUID {
		return false
	}
	f.claims = f.claims[1:]
	return true
}
