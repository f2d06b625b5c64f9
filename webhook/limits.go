package webhook

import (
	"fmt"
	"net/http"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

// ReviewTimeout is how long a review may take, including the time that it waits for
// others. The webhook configurations must allow more.
const ReviewTimeout = 2500 * time.Millisecond

// Limits of what reviews need at the same time. A decoded object of many empty items was
// seen to need 50 times the memory of its review. So all reviews together need about 250
// MiB.
const (
	// maxReviewBytes is what API servers accept in a request. etcd accepts half of that.
	maxReviewBytes = 3 << 20
	// largeReviewBytes is more than most reviews have. Large reviews do not hold up others.
	largeReviewBytes = 64 << 10
	largeReviews     = 1
	smallReviews     = 32
)

// limits bounds how many reviews are under way.
type limits struct{ small, large chan struct{} }

func newLimits() limits {
	return limits{make(chan struct{}, smallReviews), make(chan struct{}, largeReviews)}
}

// handler calls next when there is room for the review.
func (l limits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > maxReviewBytes {
			http.Error(w, fmt.Sprintf("review: %d bytes, allowed are %d", r.ContentLength, maxReviewBytes), http.StatusRequestEntityTooLarge)
			return
		}
		room := l.small
		if r.ContentLength < 0 || r.ContentLength > largeReviewBytes { // less than 0: not known
			room = l.large
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
			http.Error(w, "review: too many others are under way", http.StatusServiceUnavailable)
		}
	})
}

// within gives up on a review after a time. The review holds its room until it notices.
func within(limit time.Duration, next http.Handler) http.Handler {
	return http.TimeoutHandler(next, limit, "review: no answer within "+limit.String())
}

// refusedAnyway reports whether a list of the claim is longer than the API server accepts.
// To check such a claim would take long.
func refusedAnyway(claim resourceapi.ResourceClaimSpec) bool {
	devices := claim.Devices
	if len(devices.Requests) > resourceapi.DeviceRequestsMaxSize || len(devices.Config) > resourceapi.DeviceConfigMaxSize {
		return true
	}
	for _, request := range devices.Requests {
		if exactly := request.Exactly; exactly != nil && len(exactly.Selectors) > resourceapi.DeviceSelectorsMaxSize {
			return true
		}
		if len(request.FirstAvailable) > resourceapi.FirstAvailableDeviceRequestMaxSize {
			return true
		}
		for _, alternative := range request.FirstAvailable {
			if len(alternative.Selectors) > resourceapi.DeviceSelectorsMaxSize {
				return true
			}
		}
	}
	return false
}
