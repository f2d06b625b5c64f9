package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// busy is a handler of reviews with room for one large and one small one. The reviews
// take until open is closed.
func busy() (handler http.Handler, open chan struct{}) {
	open = make(chan struct{})
	return oneEach().handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-open
		w.WriteHeader(http.StatusNoContent)
	})), open
}

// oneEach has room for one large and one small review.
func oneEach() reviewLimits {
	return reviewLimits{&intake{most: waitingBytes}, make(chan struct{}, 1), make(chan struct{}, 1), ReviewTimeout}
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
		open := make(chan struct{})
		handler := oneEach().handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 1 {
				<-open
			}
		}))
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
		known := reviewLookups{lookups: &lookups{objects: make(chan struct{}, 1)}, ctx: ctx, left: new(mostLookups)}
		begin := time.Now()
		for range 100 {
			found(known, slow, "ResourceClaim", "ns", "c")
		}
		if took := time.Since(begin); took != 3*getTimeout/2 {
			t.Errorf("lookups took %s", took)
		}
	})
}

// A tenant can make hundreds of templates of a megabyte.
func TestOnlyWhatCountsOfATemplateIsKept(t *testing.T) {
	client := cluster(t, nil)
	large := object.Parse[resourceapi.ResourceClaimTemplate](t, strings.Replace(claimOf("large", 6), "spec: {", "spec: {spec: {", 1)+"}")
	large.Namespace = "ns"
	large.Spec.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: strings.Repeat(" ", mostTemplateBytes) + "true"}}}
	small := large.DeepCopy()
	small.Name, small.Annotations, small.Finalizers = "small", map[string]string{"a": strings.Repeat("b", 256<<10)}, []string{"example.com/a"}
	small.Spec.Spec.Devices.Requests[0].Exactly.Selectors = nil
	small.Spec.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{Requests: []string{"z"}}}
	for _, template := range []*resourceapi.ResourceClaimTemplate{large, small} {
		if _, err := client.ResourceV1().ResourceClaimTemplates("ns").Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	known, stop, err := startLookups(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, name := range []string{"large", "small"} {
		kept, err := known.templates.ResourceClaimTemplates("ns").Get(name)
		if err != nil || kept.Size() > mostTemplateBytes || kept.Annotations != nil || kept.Finalizers != nil || kept.Spec.Spec.Devices.Config != nil {
			t.Errorf("kept: %+v, %v", kept, err)
		}
		found := known.during(t.Context()).ResourceClaimTemplate("ns", name)
		if found == nil || len(found.Spec.Spec.Devices.Requests) != 1 {
			t.Errorf("found: %+v", found)
		}
	}
}

func claimOf(name string, cpu int) string {
	return fmt.Sprintf("{metadata: {name: %s}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: %d}}}}]}}}", name, cpu)
}

// A small review can name more than a thousand claims, which are looked up one after the
// other, at the rate that all reviews share.
func TestLookupsOfAReviewAreBounded(t *testing.T) {
	client := cluster(t, nil)
	known, stop, err := startLookups(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	known.enforced = true
	lookups := func(how func(*Reviewer, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error), kind, text string) (*admissionv1.AdmissionResponse, int) {
		before := len(client.Actions())
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(reviewOf(t, kind, text, ""), &review); err != nil {
			t.Fatal(err)
		}
		response, err := how(NewReviewer(known.during(t.Context())), review.Request)
		if err != nil {
			t.Fatal(err)
		}
		return response, len(client.Actions()) - before
	}
	pod := func(n int) string {
		text := "{metadata: {name: p}, spec: {containers: [{name: a}], resourceClaims: ["
		for i := range n {
			text += fmt.Sprintf("{name: c%d, resourceClaimName: two}, ", i)
		}
		return text + "]}}"
	}
	classes := "{metadata: {name: c}, spec: {devices: {requests: ["
	for i := range 32 {
		classes += fmt.Sprintf("{name: r%d, firstAvailable: [", i)
		for j := range 8 {
			classes += fmt.Sprintf("{name: a%d, deviceClassName: none-%d-%d}, ", j, i, j)
		}
		classes += "]}, "
	}
	classes += "]}}}"
	for name, row := range map[string]struct {
		how        func(*Reviewer, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
		kind, text string
		lookups    int
	}{
		"enforce, most claims":  {(*Reviewer).Enforce, "Pod", pod(mostClaims), mostClaims},
		"validate, most claims": {(*Reviewer).Validate, "Pod", pod(mostClaims), 2 * mostClaims},
		"enforce":               {(*Reviewer).Enforce, "Pod", pod(mostClaims + 1), 0},
		"mutate":                {(*Reviewer).Mutate, "Pod", pod(mostClaims + 1), 0},
		"validate":              {(*Reviewer).Validate, "Pod", pod(mostClaims + 1), 0},
		"classes":               {(*Reviewer).Validate, "ResourceClaim", classes, mostLookups},
		"classes, enforced":     {(*Reviewer).Enforce, "ResourceClaim", classes, 0}, // without capacities, any class will do
	} {
		if _, got := lookups(row.how, row.kind, row.text); got != row.lookups {
			t.Errorf("%s: %d lookups, want %d", name, got, row.lookups)
		}
	}
	response, _ := lookups((*Reviewer).Enforce, "Pod", pod(mostClaims+1))
	if want := "spec.resourceClaims: what the claims may hold is not known: there are 33, and at most 32 are looked up"; response.Allowed || response.Result.Message != want {
		t.Errorf("%+v, want a refusal with %q", response, want)
	}
}

func TestAClientCannotKeepTheServerBusy(t *testing.T) {
	server := newServer(http.NotFoundHandler(), Options{})
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
	if recorder.Code != http.StatusRequestEntityTooLarge || !strings.Contains(recorder.Body.String(), "allowed are 3145728 bytes") {
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
		"constraints": {func(n int) string {
			return "{requests: [{name: z, exactly: {" + class + "}}], constraints: " + repeated("{matchAttribute: dra.numa/l3}", n) + "}"
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

// manySelectors is a claim with as many selectors as an API server accepts, all different.
// A last one, of a request of its own, is wrong.
func manySelectors(requests, alternatives, each int) string {
	text, n := "{spec: {devices: {requests: [", 0
	for i := range requests - 1 {
		text += fmt.Sprintf("{name: r%d, firstAvailable: [", i)
		for j := range alternatives {
			text += fmt.Sprintf("{name: a%d, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 1Gi}}, selectors: [", j)
			for range each {
				n++
				text += fmt.Sprintf(`{cel: {expression: 'device.attributes["dra.numa"].?socket.orValue(-1) != %d'}}, `, n)
			}
			text += "]}, "
		}
		text += "]}, "
	}
	return text + `{name: last, exactly: {deviceClassName: cache.dra.numa, selectors: [{cel: {expression: 'device.attributes["dra.numa"].pool == "none"'}}]}}]}}}`
}

// A review with 8,192 selectors would take seconds of CPU, also after the API server has
// given up on it.
func TestSelectorsOfAReviewAreBounded(t *testing.T) {
	known, stop, err := startLookups(t.Context(), cluster(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, row := range map[string]struct {
		ctx     context.Context
		claim   string
		refused bool
	}{
		"few":                   {t.Context(), manySelectors(2, 1, 2), true},
		"few, but it has ended": {ended, manySelectors(2, 1, 2), false},
		"many":                  {t.Context(), manySelectors(32, 8, 32), false},
	} {
		text := reviewOf(t, "ResourceClaim", row.claim, "")
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(text, &review); err != nil {
			t.Fatal(err)
		}
		response, err := NewReviewer(known.during(row.ctx)).Validate(review.Request)
		if err != nil || response.Allowed == row.refused {
			t.Errorf("%s: %+v, %v, want a refusal: %t", name, response, err, row.refused)
		}
	}
}

// A pod may have any number of containers and claims, until the API server refuses to store
// it. To compare ten thousand with ten thousand takes a gigabyte of memory.
func TestLargePodsAreNotCompared(t *testing.T) {
	known, stop, err := startLookups(t.Context(), cluster(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	known.enforced = true
	reviewer := NewReviewer(known.during(t.Context()))
	ask := func(how func(*Reviewer, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error), n int) *admissionv1.AdmissionResponse {
		text := "{metadata: {name: p}, spec: {resourceClaims: ["
		claims := min(n, mostClaims)
		for i := range claims {
			text += fmt.Sprintf("{name: c%d, resourceClaimTemplateName: three}, ", i)
		}
		text += "], containers: ["
		for i := range n {
			text += fmt.Sprintf("{name: a%d, resources: {claims: [{name: c%d}]}}, ", i, i%claims)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(reviewOf(t, "Pod", text+"]}}", ""), &review); err != nil {
			t.Fatal(err)
		}
		response, err := how(reviewer, review.Request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if response := ask((*Reviewer).Mutate, 20); response.Patch == nil {
		t.Error("a pod of 20 containers is not mirrored")
	}
	const many = 1100 // and 32 claims, of which each has two amounts
	if response := ask((*Reviewer).Mutate, many); response.Patch != nil {
		t.Errorf("a pod of %d containers is mirrored", many)
	}
	if response := ask((*Reviewer).Validate, many); len(response.Warnings) > 0 {
		t.Errorf("warnings %q", response.Warnings)
	}
	const want = "there are too many claims and containers"
	if response := ask((*Reviewer).Enforce, many); response.Allowed || !strings.HasSuffix(response.Result.Message, want) {
		t.Errorf("enforced: %+v, want a refusal with %q", response, want)
	}
}
