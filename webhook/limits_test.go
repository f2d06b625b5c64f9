package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// busy is a handler of reviews with room for one large and one small one. The reviews
// take until open is closed.
func busy() (handler http.Handler, open chan struct{}) {
	open = make(chan struct{})
	limits := limits{make(chan struct{}, 1), make(chan struct{}, 1)}
	return within(ReviewTimeout, limits.handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-open
		w.WriteHeader(http.StatusNoContent)
	}))), open
}

// postAll posts bodies of these sizes, a millisecond after each other, and returns the
// answers in the same order. -1 is a small body of unknown size.
func postAll(handler http.Handler, sizes ...int) []*httptest.ResponseRecorder {
	answers, done := make([]*httptest.ResponseRecorder, len(sizes)), make(chan struct{})
	for i, size := range sizes {
		answers[i] = httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, max(size, 0))))
		request.ContentLength = int64(size)
		go func() {
			handler.ServeHTTP(answers[i], request)
			done <- struct{}{}
		}()
		time.Sleep(time.Millisecond)
	}
	for range sizes {
		<-done
	}
	return answers
}

func TestReviewsWaitForRoom(t *testing.T) {
	for name, sizes := range map[string][]int{
		"small":   {10, largeReviewBytes},
		"large":   {largeReviewBytes + 1, maxReviewBytes},
		"unknown": {-1, -1},
	} {
		synctest.Test(t, func(t *testing.T) {
			handler, open := busy()
			go func() { time.Sleep(time.Second); close(open) }()
			for i, answer := range postAll(handler, sizes...) {
				if answer.Code != http.StatusNoContent {
					t.Errorf("%s: answer %d is %d %s", name, i, answer.Code, answer.Body)
				}
			}
		})
		synctest.Test(t, func(t *testing.T) {
			handler, open := busy()
			begin := time.Now()
			for i, answer := range postAll(handler, sizes...) {
				if answer.Code != http.StatusServiceUnavailable || answer.Body.String() != "review: no answer within 2.5s" {
					t.Errorf("%s: answer %d is %d %s", name, i, answer.Code, answer.Body)
				}
			}
			if took := time.Since(begin); took > ReviewTimeout+10*time.Millisecond {
				t.Errorf("%s: the answers took %s", name, took)
			}
			close(open)
		})
	}
}

// One large review waits for another one, and small ones wait for none.
func TestLargeReviewsDoNotHoldUpSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits, open := limits{make(chan struct{}, 1), make(chan struct{}, 1)}, make(chan struct{})
		handler := within(ReviewTimeout, limits.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 1 {
				<-open
			}
		})))
		want := []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusOK}
		for i, answer := range postAll(handler, maxReviewBytes, 1, 1) {
			if answer.Code != want[i] {
				t.Errorf("answer %d is %d, want %d", i, answer.Code, want[i])
			}
		}
		close(open)
	})
}

// A pod may name any number of claims, and an API server may be slow.
func TestLookupsEndWithTheirReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*getTimeout/2)
		defer cancel()
		slow := func(ctx context.Context, _ string, _ metav1.GetOptions) (*resourceapi.ResourceClaim, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begin := time.Now()
		for range 100 {
			found(ctx, slow, "ResourceClaim", "ns", "c")
		}
		if took := time.Since(begin); took != 3*getTimeout/2 {
			t.Errorf("lookups took %s", took)
		}
	})
}

func TestAClientCannotKeepTheServerBusy(t *testing.T) {
	server := newServer(http.NotFoundHandler(), &trust{})
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.IdleTimeout <= 0 || server.MaxHeaderBytes <= 0 {
		t.Errorf("a client can wait for ever: %+v", server)
	}
	if server.WriteTimeout < server.ReadTimeout+ReviewTimeout {
		t.Errorf("%s to write is less than a review takes", server.WriteTimeout)
	}
}

func TestSizeIsLimitedWithoutALength(t *testing.T) {
	request := httptest.NewRequest(http.MethodPost, "/validate", strings.NewReader(`{"request": {"name": "`+strings.Repeat("x", maxReviewBytes)))
	request.ContentLength = -1
	recorder := httptest.NewRecorder()
	handlerOf(t, cluster(t, nil)).ServeHTTP(recorder, request)
	if recorder.Code != http.StatusBadRequest || !strings.Contains(recorder.Body.String(), "too large") {
		t.Errorf("%d %s", recorder.Code, recorder.Body)
	}
}

// The API server itself refuses them, after the webhook.
func TestClaimsWithTooLongListsAreNotChecked(t *testing.T) {
	handler := handlerOf(t, cluster(t, nil))
	repeated := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") + "]"
	}
	const class = "deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}"
	const selector = `{cel: {expression: 'device.driver == "dra.numa"'}}`
	for name, row := range map[string]struct {
		devices func(n int) string
		most    int
	}{
		"requests": {func(n int) string { return "{requests: " + repeated("{name: z, exactly: {"+class+"}}", n) + "}" }, 32},
		"alternatives": {func(n int) string {
			return "{requests: [{name: z, firstAvailable: " + repeated("{name: a, "+class+"}", n) + "}]}"
		}, 8},
		"selectors": {func(n int) string {
			return "{requests: [{name: z, exactly: {" + class + ", selectors: " + repeated(selector, n) + "}}]}"
		}, 32},
		"selectors of an alternative": {func(n int) string {
			return "{requests: [{name: z, firstAvailable: [{name: a, " + class + ", selectors: " + repeated(selector, n) + "}]}]}"
		}, 32},
		"configurations": {func(n int) string {
			return "{requests: [{name: z, exactly: {" + class + "}}], config: " + repeated("{requests: [z]}", n) + "}"
		}, 32},
	} {
		for kind, object := range map[string]string{"ResourceClaim": "{spec: {devices: %s}}", "ResourceClaimTemplate": "{spec: {spec: {devices: %s}}}"} {
			if got := ask(t, handler, "/validate", kind, fmt.Sprintf(object, row.devices(row.most)), ""); len(got.Warnings) == 0 {
				t.Errorf("%s of a %s: %d are not checked", name, kind, row.most)
			}
			if got := ask(t, handler, "/validate", kind, fmt.Sprintf(object, row.devices(row.most+1)), ""); len(got.Warnings) > 0 || !got.Allowed {
				t.Errorf("%s of a %s: %d are checked: %q", name, kind, row.most+1, got.Warnings)
			}
		}
	}
}
