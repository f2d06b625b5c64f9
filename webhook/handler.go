package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
)

// newHandler answers POST /validate, /enforce, /mutate and /translate with
// admission.k8s.io/v1 reviews, and GET /readyz. known returns lookups that end with the context.
func newHandler(known func(context.Context) Known, limits reviewLimits) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, ask func(*Reviewer, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) {
		answers := answer(func(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
			return ask(NewReviewer(known(ctx)), request)
		})
		mux.Handle("POST "+path, limits.handler(answers))
	}
	handle("/validate", (*Reviewer).Validate)
	handle("/enforce", (*Reviewer).Enforce)
	handle("/mutate", (*Reviewer).Mutate)
	handle("/translate", (*Reviewer).Translate)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // an error means that the prober has hung up
	})
	return mux
}

// answer makes a handler of a function. If the function fails, there is no answer, and
// the failurePolicy of the webhook configuration decides.
func answer(ask func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(r.Body).Decode(&review)
		if err == nil && review.Request == nil {
			err = errors.New("no request")
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("read review: %v", err), http.StatusBadRequest)
			return
		}
		response, err := ask(r.Context(), review.Request)
		if err != nil {
			klog.FromContext(r.Context()).Error(err, "Review failed", "kind", review.Request.Kind.Kind,
				"namespace", review.Request.Namespace, "name", review.Request.Name)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		review.Request, review.Response = nil, response
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			klog.FromContext(r.Context()).V(4).Info("The API server has given up on the review", "err", err)
		}
	})
}
