package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var names = []string{"webhook.ns.svc", "127.0.0.1"}

func options(client *fake.Clientset) Options {
	return Options{Client: client, Namespace: "ns", Secret: "certificate", Names: names, Validating: "v", Mutating: "m"}
}

// renewing is a renewer of a cluster, with a clock that tests can set.
func renewing(client *fake.Clientset, now *time.Time) *renewer {
	return &renewer{Options: options(client), now: func() time.Time { return *now }}
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

// mustVerify checks, as the API server does, that each bundle verifies the certificate.
func mustVerify(t *testing.T, client *fake.Clientset, certificate *x509.Certificate, now time.Time) {
	t.Helper()
	for i, bundle := range bundles(t, client) {
		if err := verify(certificate, bundle, names, now); err != nil {
			t.Errorf("bundle %d: %v", i, err)
		}
	}
}

// stored is the certificate in the Secret, which the webhook serves when its kubelet has
// seen it.
func stored(t *testing.T, client *fake.Clientset) *x509.Certificate {
	t.Helper()
	secret, err := client.CoreV1().Secrets("ns").Get(t.Context(), "certificate", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[KeyCertificate], secret.Data[KeyPrivate])
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// mustSettle settles, and checks when there is something to do next.
func mustSettle(t *testing.T, r *renewer, want time.Duration) {
	t.Helper()
	if again, err := r.settle(t.Context()); err != nil || again != want {
		t.Fatalf("settled until %s, %v, want %s", again, err, want)
	}
}

// Before there is a certificate, nobody can be kept from anything.
func TestFirstCertificateIsThereAtOnce(t *testing.T) {
	client, now := installed(), time.Now()
	r := renewing(client, &now)
	mustSettle(t, r, 0)
	first := stored(t, client)
	mustVerify(t, client, first, now)
	mustSettle(t, r, 0)
	mustSettle(t, renewing(client, &now), 0) // another one, after a restart
	if !stored(t, client).Equal(first) {
		t.Error("the certificate has changed")
	}
}

// A new certificate is in the Secret when API servers have known its authority for a minute.
// The old one is trusted all the time: kubelets may take longer than that.
func TestRotation(t *testing.T) {
	client, now := installed(), time.Now()
	r := renewing(client, &now)
	mustSettle(t, r, 0)
	old := stored(t, client)
	for range 5 {
		now = now.Add(validity - renewal + time.Hour)
		mustSettle(t, r, settlePeriod)
		now = now.Add(settlePeriod - time.Second)
		mustSettle(t, r, time.Second)
		if !stored(t, client).Equal(old) {
			t.Fatal("the certificate is replaced before it is trusted")
		}
		before := bundles(t, client)
		now = now.Add(time.Second)
		mustSettle(t, r, 0)
		mustSettle(t, r, 0)
		renewed := stored(t, client)
		if renewed.Equal(old) {
			t.Fatal("the certificate is not renewed")
		}
		for _, certificate := range []*x509.Certificate{old, renewed} {
			mustVerify(t, client, certificate, now)
			for _, bundle := range before {
				if err := verify(certificate, bundle, names, now); err != nil {
					t.Error(err)
				}
			}
		}
		if n := strings.Count(string(bundles(t, client)[0]), "BEGIN CERTIFICATE"); n != 2 {
			t.Errorf("%d authorities are trusted, want the present and the last", n)
		}
		old = renewed
	}
	now = now.Add(validity - renewal - time.Hour)
	mustSettle(t, r, 0)
	if !stored(t, client).Equal(old) {
		t.Error("a certificate is renewed before its time")
	}
	now = now.Add(10 * validity) // everything was off for long
	mustSettle(t, r, 0)
	mustVerify(t, client, stored(t, client), now)
	if n := strings.Count(string(bundles(t, client)[0]), "BEGIN CERTIFICATE"); n != 1 {
		t.Errorf("%d authorities are trusted, want only the one that is valid", n)
	}
}

// A bundle that somebody empties must be known to API servers again, before they meet the
// certificate. A renewer that starts again does not know for how long they have known it.
func TestTheMinuteBeginsAgain(t *testing.T) {
	client, now := installed(), time.Now()
	r := renewing(client, &now)
	mustSettle(t, r, 0)
	now = now.Add(validity - renewal + time.Hour)
	mustSettle(t, r, settlePeriod)
	now = now.Add(settlePeriod - time.Second)
	untrust(t, client)
	mustSettle(t, r, settlePeriod)
	now = now.Add(settlePeriod - time.Second)
	r = renewing(client, &now)
	mustSettle(t, r, settlePeriod)
	mustVerify(t, client, stored(t, client), now)
	now = now.Add(settlePeriod)
	mustSettle(t, r, 0)
	mustVerify(t, client, stored(t, client), now)
}

func TestWhatSomebodyBreaksIsMended(t *testing.T) {
	client, now := installed(), time.Now()
	r := renewing(client, &now)
	mustSettle(t, r, 0)
	secrets := client.CoreV1().Secrets("ns")
	for name, row := range map[string]struct {
		breaks func(*corev1.Secret)
		again  time.Duration
	}{
		"emptied":     {func(s *corev1.Secret) { s.Data = nil }, 0},
		"truncated":   {func(s *corev1.Secret) { s.Data[KeyPrivate] = s.Data[KeyPrivate][:20] }, 0},
		"no trust":    {func(s *corev1.Secret) { s.Data[KeyAuthorities] = []byte("x") }, 0},
		"other names": {func(s *corev1.Secret) { s.Data, _ = Issue([]string{"other"}, nil, now) }, 0},
		"expiring":    {func(s *corev1.Secret) { s.Data, _ = Issue(names, nil, now.Add(renewal-validity-time.Hour)) }, settlePeriod},
	} {
		secret, err := secrets.Get(t.Context(), "certificate", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		row.breaks(secret)
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustSettle(t, r, row.again)
		if now = now.Add(row.again); row.again > 0 {
			mustSettle(t, r, 0)
		}
		mustVerify(t, client, stored(t, client), now)
		if t.Failed() {
			t.Fatalf("the Secret was %s", name)
		}
	}
	untrust(t, client)
	mustSettle(t, r, 0)
	mustVerify(t, client, stored(t, client), now)
}

// Another renewer writes between our read and our write. It has published its authorities,
// and so have we: the last one would have the API server trust nothing that is served.
func TestASlowRenewerDoesNotTakeTrustBack(t *testing.T) {
	for name, publishes := range map[string]bool{"has nothing to publish": false, "publishes the old ones": true} {
		client, now := installed(), time.Now()
		slow := renewing(client, &now)
		mustSettle(t, slow, 0)
		if publishes {
			untrust(t, client)
		}
		later := now.Add(validity + time.Hour)
		fast, renewed := renewing(another(client), &later), false
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
			_, err = fast.settle(t.Context())
			return true, old, err
		})
		if _, err := slow.settle(t.Context()); publishes != apierrors.IsConflict(err) || !publishes && err != nil {
			t.Errorf("%s: error %v, want a conflict: %t", name, err, publishes)
		}
		if !renewed {
			t.Fatalf("%s: the certificate is not renewed", name)
		}
		mustVerify(t, client, stored(t, client), later)
	}
}

// During an update there may be two renewers for a moment.
func TestTwoRenewersEndWithOneCertificate(t *testing.T) {
	client, now := installed(), time.Now()
	a, b := renewing(client, &now), renewing(another(client), &now)
	mustSettle(t, a, 0)
	now = now.Add(validity - renewal + time.Hour)
	mustSettle(t, a, settlePeriod)
	mustSettle(t, b, settlePeriod) // takes the place of what a has published
	now = now.Add(settlePeriod)
	mustSettle(t, a, settlePeriod) // which has to begin again
	mustSettle(t, b, settlePeriod)
	now = now.Add(settlePeriod / 2)
	for range 2 { // a has ended
		mustVerify(t, client, stored(t, client), now)
		now = now.Add(settlePeriod)
		mustSettle(t, b, 0)
	}
	mustVerify(t, client, stored(t, client), now)
}

// The watches see what somebody breaks.
func TestAnEmptiedBundleIsFilledInSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := installed()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Renew(ctx, options(client)) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		filled := func() bool {
			all := bundles(t, client)
			return !slices.ContainsFunc(all, func(bundle []byte) bool { return len(bundle) == 0 })
		}
		for range 3 {
			for deadline := time.Now().Add(checkPeriod / 10); !filled(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a bundle stays empty")
				}
			}
			untrust(t, client)
		}
	})
}

// untrust removes the authorities of the mutating configuration.
func untrust(t *testing.T, client *fake.Clientset) {
	t.Helper()
	configs := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	for {
		config, err := configs.Get(t.Context(), "m", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		config.Webhooks[0].ClientConfig.CABundle = nil
		_, err = configs.Update(t.Context(), config, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

func TestWithoutASecretThereIsNothing(t *testing.T) {
	now := time.Now()
	r := renewing(fake.NewClientset(), &now)
	r.Validating, r.Mutating = "", ""
	if _, err := r.settle(t.Context()); err == nil || !strings.Contains(err.Error(), "read secret ns/certificate: ") {
		t.Errorf("error %v", err)
	}
}
