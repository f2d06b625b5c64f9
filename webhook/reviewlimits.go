package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

// ReviewTimeout is how long a review may take, including the time that it waits for
// others. The webhook configurations must allow more.
const ReviewTimeout = 2500 * time.Millisecond

// Limits of what reviews need at the same time. A decoded object of many empty items was
// seen to need 50 times the memory of its review. So all reviews together need about 250
// MiB, and about 50 MiB more wait.
const (
	// maxReviewBytes is what API servers accept in a request. etcd accepts half of that.
	maxReviewBytes = 3 << 20
	// largeReviewBytes is more than most reviews have. Large reviews do not hold up others.
	largeReviewBytes = 64 << 10
	largeReviews     = 1
	smallReviews     = 32
	// waitingBytes is for the bodies that arrive or wait for room: 16 of the largest.
	waitingBytes = 16 * maxReviewBytes
	// bodyTimeout is how long a body may take to arrive. API servers are near.
	bodyTimeout = time.Second
	// reviewSelectors is how many different selectors are evaluated for a review.
	reviewSelectors = 512
	// mostClaims is how many claims a pod may have: as many as one claim has devices.
	// Kubernetes sets no bound, and a small review can name more than a thousand.
	mostClaims = resourceapi.AllocationResultsMaxSize
	// mostLookups is how many objects the API server is asked for during a review: some look
	// twice at each claim of a pod, and at classes. All reviews share the rate of the client.
	mostLookups = 4 * mostClaims
	// lookupsAtOnce is how many reviews may read such an object at the same time. A claim with
	// 70,000 owners, which is 1.3 MB, was seen to take 26 MiB to decode.
	lookupsAtOnce = 4
)

// reviewLimits bounds what arrives, and how many reviews are under way.
type reviewLimits struct {
	intake       *intake
	small, large chan struct{}
	timeout      time.Duration // of a review
}

func newReviewLimits() reviewLimits {
	return reviewLimits{&intake{most: waitingBytes}, make(chan struct{}, smallReviews), make(chan struct{}, largeReviews), ReviewTimeout}
}

// handler calls next when the body of the review has arrived and there is room for it.
func (l reviewLimits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		body, err := l.intake.read(w, r, begin.Add(bodyTimeout))
		if err != nil {
			http.Error(w, fmt.Sprintf("read review: %v", err), codeOf(err))
			return
		}
		room := l.small
		if len(body.text) > largeReviewBytes {
			room = l.large
		}
		review := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer body.done()
			if err := body.wait(r.Context(), room); err != nil {
				http.Error(w, fmt.Sprintf("review: %v", err), codeOf(err))
				return
			}
			defer func() { <-room }()
			body.done()
			r.Body = io.NopCloser(bytes.NewReader(body.text))
			next.ServeHTTP(w, r)
		})
		// It gives up after a time. The review holds its room until it notices.
		http.TimeoutHandler(review, l.timeout-time.Since(begin), "review: no answer within "+l.timeout.String()).ServeHTTP(w, r)
	})
}

// codeOf is the status for a review that is not answered.
func codeOf(err error) int {
	var late net.Error
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errSlowest), errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.As(err, &late) && late.Timeout():
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// refusedAnyway reports whether a list or a text of the claim is longer than the API server
// accepts. To check such a claim would take long.
func refusedAnyway(claim resourceapi.ResourceClaimSpec) bool {
	devices := claim.Devices
	if len(devices.Requests) > resourceapi.DeviceRequestsMaxSize || len(devices.Config) > resourceapi.DeviceConfigMaxSize ||
		len(devices.Constraints) > resourceapi.DeviceConstraintsMaxSize {
		return true
	}
	for _, request := range devices.Requests {
		if exactly := request.Exactly; exactly != nil && tooLong(exactly.Selectors) {
			return true
		}
		if len(request.FirstAvailable) > resourceapi.FirstAvailableDeviceRequestMaxSize {
			return true
		}
		for _, alternative := range request.FirstAvailable {
			if tooLong(alternative.Selectors) {
				return true
			}
		}
	}
	return false
}

func tooLong(selectors []resourceapi.DeviceSelector) bool {
	return len(selectors) > resourceapi.DeviceSelectorsMaxSize ||
		slices.ContainsFunc(selectors, func(selector resourceapi.DeviceSelector) bool {
			return selector.CEL != nil && len(selector.CEL.Expression) > resourceapi.CELSelectorExpressionMaxLength
		})
}
