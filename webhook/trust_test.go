package webhook

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var names = []string{"webhook.ns.svc", "127.0.0.1"}

// replica is one of several webhooks of a cluster, with a clock that tests can set.
func replica(client *fake.Clientset, now *time.Time) *trust {
	return &trust{
		client: client, namespace: "ns", secret: "certificate", names: names, validating: "v", mutating: "m",
		now: func() time.Time { return *now },
	}
}

func installed() *fake.Clientset {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	client := fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "certificate"}},
		&admissionregistration.ValidatingWebhookConfiguration{
			ObjectMeta: named("v"),
			Webhooks:   []admissionregistration.ValidatingWebhook{{Name: "a"}, {Name: "b"}},
		},
		&admissionregistration.MutatingWebhookConfiguration{
			ObjectMeta: named("m"),
			Webhooks:   []admissionregistration.MutatingWebhook{{Name: "c"}},
		},
	)
	client.PrependReactor("update", "*", updateIfUnchanged(client.Tracker()))
	return client
}

// updateIfUnchanged refuses to update an object that has changed since it was read, as
// API servers do.
func updateIfUnchanged(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject()
		update, err := meta.Accessor(object)
		if err != nil {
			return true, nil, err
		}
		stored, err := tracker.Get(action.GetResource(), action.GetNamespace(), update.GetName())
		if err != nil {
			return true, nil, err
		}
		now, err := meta.Accessor(stored)
		if err != nil {
			return true, nil, err
		}
		if now.GetResourceVersion() != update.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), update.GetName(), nil)
		}
		update.SetResourceVersion(now.GetResourceVersion() + "1")
		return true, object, tracker.Update(action.GetResource(), object, action.GetNamespace())
	}
}

// another returns another client of the same API server.
func another(client *fake.Clientset) *fake.Clientset {
	other := &fake.Clientset{}
	other.AddReactor("update", "*", updateIfUnchanged(client.Tracker()))
	other.AddReactor("*", "*", clienttesting.ObjectReaction(client.Tracker()))
	return other
}

// bundles are the authorities that the API server trusts.
func bundles(t *testing.T, client *fake.Clientset) (all [][]byte) {
	t.Helper()
	validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "v", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mutating, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, webhook := range validating.Webhooks {
		all = append(all, webhook.ClientConfig.CABundle)
	}
	return append(all, mutating.Webhooks[0].ClientConfig.CABundle)
}

// mustTrust checks, as the API server does, that each bundle verifies the certificate
// that a replica serves.
func mustTrust(t *testing.T, client *fake.Clientset, served *trust, now time.Time) {
	t.Helper()
	certificate := served.certificate.Load()
	if certificate == nil {
		t.Fatal("no certificate is served")
	}
	mustVerify(t, client, certificate.Leaf, now)
}

func mustVerify(t *testing.T, client *fake.Clientset, certificate *x509.Certificate, now time.Time) {
	t.Helper()
	for i, bundle := range bundles(t, client) {
		if err := verify(certificate, bundle, names, now); err != nil {
			t.Errorf("bundle %d: %v", i, err)
		}
	}
}

// stored is the certificate in the Secret, which replicas serve next.
func stored(t *testing.T, client *fake.Clientset) *x509.Certificate {
	t.Helper()
	secret, err := client.CoreV1().Secrets("ns").Get(t.Context(), "certificate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := load(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Leaf
}

func mustSettle(t *testing.T, replicas ...*trust) {
	t.Helper()
	for _, replica := range replicas {
		if err := replica.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplicasAgree(t *testing.T) {
	client, now := installed(), time.Now()
	a, b := replica(client, &now), replica(client, &now)
	mustSettle(t, a, b, a)
	mustTrust(t, client, a, now)
	mustTrust(t, client, b, now)
	if !a.certificate.Load().Leaf.Equal(b.certificate.Load().Leaf) {
		t.Error("replicas serve different certificates")
	}
}

// A replica that has not checked yet still serves the old certificate, which is still
// trusted. The replica that renews it serves the new one later, when all API servers have
// seen the new authorities.
func TestRotation(t *testing.T) {
	client, now := installed(), time.Now()
	a, b := replica(client, &now), replica(client, &now)
	mustSettle(t, a, b)
	old := a.certificate.Load().Leaf
	for range 5 {
		now = now.Add(validity - renewal + time.Hour)
		before := bundles(t, client)
		mustSettle(t, a, b)
		if stored(t, client).Equal(old) {
			t.Fatal("the certificate is not renewed")
		}
		for _, replica := range []*trust{a, b} {
			mustTrust(t, client, replica, now)
			for _, bundle := range before { // of an API server that is late
				if err := verify(replica.certificate.Load().Leaf, bundle, names, now); err != nil {
					t.Error(err)
				}
			}
		}
		mustSettle(t, a)
		if a.certificate.Load().Leaf.Equal(old) {
			t.Fatal("the new certificate is not served")
		}
		mustTrust(t, client, a, now)
		mustTrust(t, client, b, now)
		mustSettle(t, b)
		if old = a.certificate.Load().Leaf; !b.certificate.Load().Leaf.Equal(old) {
			t.Fatal("replicas serve different certificates")
		}
		if n := strings.Count(string(bundles(t, client)[0]), "BEGIN CERTIFICATE"); n != 2 {
			t.Errorf("%d authorities are trusted, want the present and the last", n)
		}
	}
	now = now.Add(validity - renewal - time.Hour)
	mustSettle(t, a)
	if !a.certificate.Load().Leaf.Equal(old) {
		t.Error("a certificate is renewed before its time")
	}
	now = now.Add(10 * validity) // everything was off for long
	mustSettle(t, a)
	mustTrust(t, client, a, now)
	if n := strings.Count(string(bundles(t, client)[0]), "BEGIN CERTIFICATE"); n != 1 {
		t.Errorf("%d authorities are trusted, want only the one that is valid", n)
	}
}

func TestWhatSomebodyBreaksIsMended(t *testing.T) {
	client, now := installed(), time.Now()
	a := replica(client, &now)
	mustSettle(t, a)
	secrets := client.CoreV1().Secrets("ns")
	for name, breaks := range map[string]func(*corev1.Secret){
		"emptied":     func(s *corev1.Secret) { s.Data = nil },
		"truncated":   func(s *corev1.Secret) { s.Data[keyPrivate] = s.Data[keyPrivate][:20] },
		"no trust":    func(s *corev1.Secret) { s.Data[keyAuthorities] = []byte("x") },
		"other names": func(s *corev1.Secret) { s.Data, _ = issue([]string{"other"}, nil, now) },
	} {
		secret, err := secrets.Get(t.Context(), "certificate", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		breaks(secret)
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustSettle(t, a)
		mustTrust(t, client, a, now)
		if t.Failed() {
			t.Fatalf("the Secret was %s", name)
		}
	}
	untrust(t, client)
	mustSettle(t, a)
	mustTrust(t, client, a, now)
}

// The other replica wrote between our read and our write.
func TestTheFirstReplicaWins(t *testing.T) {
	client, now := installed(), time.Now()
	a, b := replica(client, &now), replica(client, &now)
	raced := false
	client.PrependReactor("update", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if raced {
			return false, nil, nil
		}
		raced = true
		secret := action.(clienttesting.UpdateAction).GetObject().DeepCopyObject().(*corev1.Secret)
		data, err := issue(names, nil, now)
		if err != nil {
			return true, nil, err
		}
		secret.Data = data // the client is locked: the other one writes past it
		if err := client.Tracker().Update(action.GetResource(), secret, "ns"); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "certificate", nil)
	})
	mustSettle(t, a, b)
	if !raced || !a.certificate.Load().Leaf.Equal(b.certificate.Load().Leaf) {
		t.Error("replicas serve different certificates")
	}
}

// A replica reads the old certificate, and another one renews it before the first one
// publishes the old authorities. So the API server would not trust the new certificate.
func TestASlowReplicaDoesNotTakeTrustBack(t *testing.T) {
	for name, publishes := range map[string]bool{"has nothing to publish": false, "publishes the old ones": true} {
		client, now := installed(), time.Now()
		slow := replica(client, &now)
		mustSettle(t, slow)
		if publishes {
			untrust(t, client)
		}
		later := now.Add(validity - renewal + time.Hour)
		fast, renewed := replica(another(client), &later), false
		client.PrependReactor("get", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if renewed {
				return false, nil, nil
			}
			renewed = true
			old, err := client.Tracker().Get(action.GetResource(), "ns", "certificate")
			if err != nil {
				return true, nil, err
			}
			old = old.DeepCopyObject()
			return true, old, fast.settle(t.Context())
		})
		if err := slow.settle(t.Context()); publishes != apierrors.IsConflict(err) || !publishes && err != nil {
			t.Errorf("%s: error %v, want a conflict: %t", name, err, publishes)
		}
		if !renewed || stored(t, client).Equal(slow.certificate.Load().Leaf) {
			t.Fatalf("%s: the certificate is not renewed", name)
		}
		mustVerify(t, client, stored(t, client), later)
		mustTrust(t, client, slow, now)
		mustTrust(t, client, fast, later)
	}
}

// untrust removes the authorities of the mutating configuration.
func untrust(t *testing.T, client *fake.Clientset) {
	t.Helper()
	configs := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	config, err := configs.Get(t.Context(), "m", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Webhooks[0].ClientConfig.CABundle = nil
	if _, err := configs.Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutASecretThereIsNothing(t *testing.T) {
	now := time.Now()
	a := replica(fake.NewClientset(), &now)
	a.validating, a.mutating = "", ""
	err := a.settle(t.Context())
	if err == nil || !strings.Contains(err.Error(), "keep certificate in secret ns/certificate: ") || a.certificate.Load() != nil {
		t.Errorf("error %v", err)
	}
}
