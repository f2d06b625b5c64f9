package kubeletplugin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers answers each path with a status code, and all other requests with an error.
type answers map[string]int

func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	code, ok := a[request.URL.Path]
	if !ok {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: code, Body: http.NoBody}, nil
}

func TestRequestsAreCountedByKind(t *testing.T) {
	const (
		slices = "/apis/resource.k8s.io/v1/resourceslices"
		claim  = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
	)
	var requests APIRequests
	transport := requests.Count(answers{slices: 201, slices + "/s": 409, claim: 200, claim + "/status": 200, "/api/v1/namespaces/ns/pods/p": 404, "/version": 200})
	for _, request := range []struct{ method, url string }{
		{"GET", slices},
		{"GET", slices + "?watch=true"},
		{"POST", slices + "?dryRun=All"},
		{"POST", slices},
		{"POST", slices},
		{"PUT", slices + "/s"},
		{"DELETE", slices + "/s"},
		{"GET", claim},
		{"PATCH", claim + "/status"},
		{"GET", "/api/v1/namespaces/ns/pods/p"},
		{"GET", "/version"},
		{"POST", "/apis/events.k8s.io/v1/namespaces/default/events"},
		{"OPTIONS", "/"},
	} {
		answer, err := transport.RoundTrip(httptest.NewRequest(request.method, "https://server"+request.url, nil))
		if err == nil {
			_ = answer.Body.Close()
		}
	}
	want := map[APIRequest]uint64{
		{"list", "resourceslices", 201}: 1, {"watch", "resourceslices", 201}: 1, {"dry-run", "resourceslices", 201}: 1,
		{"create", "resourceslices", 201}: 2, {"update", "resourceslices", 409}: 1, {"delete", "resourceslices", 409}: 1,
		{"get", "resourceclaims", 200}: 1, {"patch", "resourceclaims/status", 200}: 1, {"get", "pods", 404}: 1,
		{"list", "other", 200}: 1, {"create", "events", 0}: 1, {"other", "other", 0}: 1,
	}
	if diff := cmp.Diff(want, requests.Read()); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
}

// A path that a redirect of a hostile proxy chose adds no label.
func TestNoPathBecomesAKind(t *testing.T) {
	for _, path := range []string{"/", "/api", "/apis/x", "/api/v1/secrets/a", "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b/../c", "//"} {
		request := httptest.NewRequest(http.MethodGet, "https://server/", nil)
		request.URL.Path = path
		if got := apiRequest(request); got.Resource != "other" {
			t.Errorf("%s is a request for %s, want other", path, got.Resource)
		}
	}
}
