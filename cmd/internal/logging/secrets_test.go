package logging

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// From verbosity 8, client-go logs the bodies of requests and answers. The webhook reads
// and writes a Secret with its key, and gather collects logs.
func TestNoVerbosityLogsSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "hunter2"}, "data": {"tls.key": "aHVudGVyMg=="}}`)
	}))
	t.Cleanup(server.Close)
	request := func() {
		// A client decides when it is made whether it logs requests.
		client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, BearerToken: "hunter2", QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		secrets := client.CoreV1().Secrets("dra-numa")
		if _, err := secrets.Get(t.Context(), "webhook", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		sent := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "webhook"}, Data: map[string][]byte{"tls.key": []byte("hunter2")}}
		if _, err := secrets.Update(t.Context(), sent, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []cli.LogFormat{cli.LogText, cli.LogJSON} {
		for level := range 11 {
			text := logged(t, format, level, request)
			if strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
				t.Errorf("-v %d logs\n%s", level, text)
			}
			if level >= 6 && !strings.Contains(text, "/api/v1/namespaces/dra-numa/secrets/webhook") {
				t.Errorf("-v %d does not log the request:\n%s", level, text)
			}
		}
	}
}
