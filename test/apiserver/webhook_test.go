package apiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/certificate"
)

const (
	webhookName = "dra-driver-numa-webhook"
	renewerName = "dra-driver-numa-webhook-renewer"
)

// startRenewer makes and renews the certificate, with the rights of its service account.
func startRenewer(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	options := certificate.Options{
		Client: as(t, renewerName, nil), Namespace: "dra-numa", Secret: webhookName,
		Names: []string{"127.0.0.1"}, Validating: webhookName, Mutating: webhookName,
	}
	go func() { ended <- certificate.Renew(ctx, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("renewer: %v", err)
		}
	})
}

// mounted reads the certificate as a kubelet does that mounts it for the webhook, which may
// read no Secret itself.
func mounted(ctx context.Context, admin kubernetes.Interface) (*tls.Certificate, error) {
	secret, err := admin.CoreV1().Secrets("dra-numa").Get(ctx, webhookName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(secret.Data[certificate.KeyCertificate], secret.Data[certificate.KeyPrivate])
	return &pair, err
}

// startWebhook runs replicas with the rights of the chart's service account, and what renews
// their certificate. The API server asks the first one, by its address: there is no node for
// a Service.
func startWebhook(t *testing.T, admin kubernetes.Interface, replicas int, mirrorRequests string) (addresses []string) {
	t.Helper()
	return startWebhookThat(t, admin, replicas, mirrorRequests, nil)
}

// startWebhookThat is startWebhook, with translation of pods unless that is nil.
func startWebhookThat(t *testing.T, admin kubernetes.Interface, replicas int, mirrorRequests string, translation *webhook.Translation) (addresses []string) {
	t.Helper()
	installChart(t, "webhook.enabled=true", "webhook.mirrorRequests="+mirrorRequests, "webhook.failurePolicy=Fail", fmt.Sprintf("webhook.translate.enabled=%t", translation != nil))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for i := range replicas {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, listener.Addr().String())
		if i == 0 {
			pointWebhooks(t, admin, addresses[0])
		}
		options := webhook.Options{
			Client: as(t, webhookName, nil), Listener: listener,
			Certificate: func() (*tls.Certificate, error) { return mounted(ctx, admin) },
			Enforced:    mirrorRequests == "enforce",
			Translation: translation,
		}
		running.Go(func() {
			if err := webhook.Run(ctx, options); err != nil {
				t.Errorf("webhook: %v", err)
			}
		})
	}
	startRenewer(t)
	return addresses
}

// pointWebhooks has the API server ask an address.
func pointWebhooks(t *testing.T, admin kubernetes.Interface, address string) {
	t.Helper()
	point := func(config *admissionregistration.WebhookClientConfig) {
		url := "https://" + address + *config.Service.Path
		config.URL, config.Service = &url, nil
	}
	api := admin.AdmissionregistrationV1()
	validating, err := api.ValidatingWebhookConfigurations().Get(t.Context(), webhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range validating.Webhooks {
		point(&validating.Webhooks[i].ClientConfig)
	}
	mutating, err := api.MutatingWebhookConfigurations().Get(t.Context(), webhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutating.Webhooks {
		point(&mutating.Webhooks[i].ClientConfig)
	}
	if _, err := api.ValidatingWebhookConfigurations().Update(t.Context(), validating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.MutatingWebhookConfigurations().Update(t.Context(), mutating, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// warnings keeps what the API server warns of.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

func clientWithWarnings(t *testing.T) (kubernetes.Interface, *warnings) {
	t.Helper()
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	said := &warnings{}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler = said
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api, said
}

const badClaim = `
metadata: {name: bad}
spec:
  devices:
    requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa}}]
    config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: x}}}]
`

// refused waits until the API server asks the webhook, and returns its answer.
func refused(t *testing.T, api kubernetes.Interface) string {
	t.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		_, err = api.ResourceV1().ResourceClaims("default").Create(t.Context(), object.Parse[resourceapi.ResourceClaim](t, badClaim), dryRun)
		if err != nil && !strings.Contains(err.Error(), "failed calling webhook") { // it fails closed, and is not ready
			return err.Error()
		}
	}
	t.Fatalf("the webhook is not asked: %v", err)
	return ""
}

func TestWebhookRefusesInTheseWords(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	addresses := startWebhook(t, admin, 2, "true")
	const want = `admission webhook "parameters.webhook.dra.numa" denied the request: ` +
		`spec.devices.config[0].opaque.parameters: partition: "x", allowed are root, isolated, none`
	if got := refused(t, admin); got != want {
		t.Errorf("refused with %q, want %q", got, want)
	}
	// Both replicas started at once, and serve the same certificate.
	var served [2]string
	for i, address := range addresses {
		for deadline := time.Now().Add(patience); served[i] == "" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			if err == nil {
				served[i] = connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
				connection.Close()
			}
		}
	}
	if served[0] == "" || served[0] != served[1] {
		t.Errorf("replicas serve the certificates %q", served)
	}
}

// TestBundleThatSomebodyEmptiesIsFilled: until then, the API server would refuse what fails
// closed.
func TestBundleThatSomebodyEmptiesIsFilled(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	startWebhook(t, admin, 1, "true")
	refused(t, admin)
	configs := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	config, err := configs.Get(t.Context(), webhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range config.Webhooks {
		config.Webhooks[i].ClientConfig.CABundle = nil
	}
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, func() string {
		config, err := configs.Get(t.Context(), webhookName, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, entry := range config.Webhooks {
			if len(entry.ClientConfig.CABundle) == 0 {
				return "the bundle of " + entry.Name + " is empty"
			}
		}
		return ""
	})
	refused(t, admin)
}

// TestWebhookCannotTakeTheClusterOver: it reads what tenants write, so it may be taken over.
func TestWebhookCannotTakeTheClusterOver(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t, "webhook.enabled=true", "webhook.mirrorRequests=enforce")
	secret, err := admin.CoreV1().Secrets("dra-numa").Get(t.Context(), webhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), webhookName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}
	for account, allowed := range map[string]bool{webhookName: false, renewerName: true} {
		api := as(t, account, nil)
		_, read := api.CoreV1().Secrets("dra-numa").Get(t.Context(), webhookName, metav1.GetOptions{})
		_, written := api.CoreV1().Secrets("dra-numa").Update(t.Context(), secret, dryRun)
		_, redirected := api.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), config, dryRun)
		for what, err := range map[string]error{"read the Secret": read, "write the Secret": written, "change its configuration": redirected} {
			if allowed && err != nil || !allowed && !apierrors.IsForbidden(err) {
				t.Errorf("%s may %s: %v, want %t", account, what, err, allowed)
			}
		}
		other := config.DeepCopy()
		other.Name = "other"
		if _, err := api.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), other, dryRun); !apierrors.IsForbidden(err) {
			t.Errorf("%s may change other configurations: %v", account, err)
		}
		if _, err := api.CoreV1().Secrets("dra-numa").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s may list Secrets: %v", account, err)
		}
	}
}

// TestUpgradeLeavesCertificateAndTrust: they are the webhook's, and it may be away.
func TestUpgradeLeavesCertificateAndTrust(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t, "webhook.enabled=true")
	secrets, configs := admin.CoreV1().Secrets("dra-numa"), admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	read := func() (*corev1.Secret, *admissionregistration.ValidatingWebhookConfiguration) {
		secret, err := secrets.Get(t.Context(), webhookName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config, err := configs.Get(t.Context(), webhookName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return secret, config
	}
	secret, config := read()
	secret.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	authorities, err := os.ReadFile(authorityFile(t))
	if err != nil {
		t.Fatal(err)
	}
	config.Webhooks[0].ClientConfig.CABundle = authorities
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	installChart(t, "webhook.enabled=true", "verbosity=3")
	secret, config = read()
	if string(secret.Data["tls.crt"]) != "certificate" || !bytes.Equal(config.Webhooks[0].ClientConfig.CABundle, authorities) {
		t.Errorf("after the upgrade the secret is %q, the bundle %q", secret.Data, config.Webhooks[0].ClientConfig.CABundle)
	}
}

// authorityFile holds some certificate.
func authorityFile(t *testing.T) string {
	t.Helper()
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	text := cluster.Config.CAData
	if len(text) == 0 {
		return cluster.Config.CAFile
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWebhookWarnsAndMirrors(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	startWebhook(t, admin, 1, "true")
	refused(t, admin)
	publish(t.Context(), t, admin, "mirrored", rigMachine())
	api, said := clientWithWarnings(t)
	create(t, api.ResourceV1().ResourceClaimTemplates("default"), object.Parse[resourceapi.ResourceClaimTemplate](t, `
metadata: {name: mirrored}
spec: {spec: {devices: {requests: [{name: zone, exactly: {
  deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3, memory: 64Mi, hugepages2Mi: 4Mi, dra.numa/cpu: 1}}}}]}}}
`))
	want := []string{"spec.spec.devices.requests[0].exactly.capacity.requests[dra.numa/cpu]: " +
		"no device has this capacity, so the pod would stay Pending: write cpu (unknown-capacity-key)"}
	if diff := cmp.Diff(want, said.texts); diff != "" {
		t.Errorf("warnings of the template (-want +got):\n%s", diff)
	}
	mirrorPod(t, api, said)
}

// mirrorPod creates the pod as it would be, twice: the second time as the API server
// answered the first.
func mirrorPod(t *testing.T, api kubernetes.Interface, said *warnings) {
	t.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	pod := object.Parse[corev1.Pod](t, `
metadata: {name: mirrored}
spec:
  resourceClaims: [{name: zone, resourceClaimTemplateName: mirrored}, {name: later, resourceClaimName: later}]
  containers:
  - {name: main, image: none, resources: {claims: [{name: zone}], requests: {cpu: 100m}, limits: {memory: 1Gi}}}
  - {name: beside, image: none, resources: {requests: {cpu: 1}}}
`)
	eventually(t, "the webhook knows the node's slices", func() bool {
		created, err := api.CoreV1().Pods("default").Create(t.Context(), pod, dryRun)
		return err == nil && created.Spec.Containers[0].Resources.Requests.Cpu().String() == "4"
	})
	for range 2 {
		said.texts = nil
		created, err := api.CoreV1().Pods("default").Create(t.Context(), pod, dryRun)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, container := range created.Spec.Containers {
			text, err := yaml.Marshal(container.Resources)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text))
		}
		want := []string{
			"claims:\n- name: zone\nlimits:\n  hugepages-2Mi: 4Mi\n  memory: 1Gi\nrequests:\n  cpu: \"4\"\n  hugepages-2Mi: 4Mi\n  memory: 1Gi\n",
			"requests:\n  cpu: \"1\"\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("resources (-want +got):\n%s", diff)
		}
		if got, want := created.Annotations["dra.numa/mirrored"], `{"main":{"cpu":"4","hugepages-2Mi":"4Mi","memory":"64Mi"}}`; got != want {
			t.Errorf("annotation %s, want %s", got, want)
		}
		if diff := cmp.Diff([]string{`spec.resourceClaims[1]: there is no claim "later" (unresolved-claim)`}, said.texts); diff != "" {
			t.Errorf("warnings of the pod (-want +got):\n%s", diff)
		}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Resources = created.Spec.Containers[i].Resources
		}
		pod.Annotations = created.Annotations
	}
}
