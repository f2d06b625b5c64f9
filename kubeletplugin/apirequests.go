package kubeletplugin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// APIRequests counts the requests to the API server: those of this package, and those of
// the kubelet helper, which writes ResourceSlices. Its zero value has counted nothing.
type APIRequests struct {
	mu     sync.Mutex
	counts map[APIRequest]uint64
}

// APIRequest is one kind of requests.
type APIRequest struct {
	Verb     string // of the API, such as "list"; "dry-run" for a create that stores nothing
	Resource string // such as "resourceclaims/status"; "other" for one that the daemon does not use
	Code     int    // of the HTTP answer; 0 if there was none
}

// Count returns a transport that counts the requests of another one. A watch counts when it
// begins.
func (r *APIRequests) Count(next http.RoundTripper) http.RoundTripper {
	return &countingTransport{r, next}
}

// Read returns the counts so far.
func (r *APIRequests) Read() map[APIRequest]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

type countingTransport struct {
	requests *APIRequests
	next     http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	counted := apiRequest(request)
	answer, err := t.next.RoundTrip(request)
	if err == nil {
		counted.Code = answer.StatusCode
	}
	t.requests.mu.Lock()
	defer t.requests.mu.Unlock()
	if t.requests.counts == nil {
		t.requests.counts = make(map[APIRequest]uint64)
	}
	t.requests.counts[counted]++
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// countedResources are the resources that the daemon uses.
var countedResources = []string{"events", "nodes", "pods", "resourceclaims", "resourceclaims/status", "resourceslices"}

// apiRequest returns the kind of a request, without its answer. The path is
// /api/v1/… or /apis/<group>/<version>/…, then namespaces/<namespace>/ if there is one,
// the resource, the name and the subresource.
func apiRequest(request *http.Request) APIRequest {
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	skip := 2
	if segments[0] == "apis" {
		skip = 3
	}
	segments = segments[min(skip, len(segments)):]
	if len(segments) > 2 && segments[0] == "namespaces" {
		segments = segments[2:]
	}
	counted := APIRequest{Resource: "other"}
	named := len(segments) > 1
	if len(segments) > 0 {
		resource := segments[0]
		if len(segments) > 2 {
			resource += "/" + segments[2]
		}
		if slices.Contains(countedResources, resource) {
			counted.Resource = resource
		}
	}
	query := request.URL.Query()
	switch request.Method {
	case http.MethodGet:
		switch {
		case query.Get("watch") == "true" || query.Get("watch") == "1":
			counted.Verb = "watch"
		case named:
			counted.Verb = "get"
		default:
			counted.Verb = "list"
		}
	case http.MethodPost:
		counted.Verb = "create"
		if query.Has("dryRun") {
			counted.Verb = "dry-run"
		}
	case http.MethodPut:
		counted.Verb = "update"
	case http.MethodPatch:
		counted.Verb = "patch"
	case http.MethodDelete:
		counted.Verb = "delete"
	default:
		counted.Verb = "other"
	}
	return counted
}
