package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	admissionapi "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// trust maintains the certificate, which all replicas share in a Secret, and makes the
// API server trust it. A new certificate is trusted before it is served. An old one is
// trusted as long as a replica may serve it. Only one goroutine may call settle.
type trust struct {
	client               kubernetes.Interface
	namespace, secret    string
	names                []string // of the webhook's server
	validating, mutating string   // webhook configurations; "" means none
	now                  func() time.Time
	published            []byte // authorities that the configurations had when settle last ended
	certificate          atomic.Pointer[tls.Certificate]
}

// settle does everything that is necessary. Any replica may repeat it at any time.
//
// It reads the webhook configurations before the Secret. So if another replica has since
// renewed the certificate and published the new authorities, the API server refuses to
// replace these with the old ones.
func (t *trust) settle(ctx context.Context) error {
	publications, err := t.publications(ctx)
	if err != nil {
		return err
	}
	data, err := t.agree(ctx)
	if err != nil {
		return fmt.Errorf("keep certificate in secret %s/%s: %w", t.namespace, t.secret, err)
	}
	certificate, err := load(data)
	if err != nil {
		return fmt.Errorf("load certificate of secret %s/%s: %w", t.namespace, t.secret, err)
	}
	authorities := data[keyAuthorities]
	for _, publish := range publications {
		if err := publish(ctx, authorities); err != nil {
			return err
		}
	}
	t.serve(certificate, authorities)
	return nil
}

// serve replaces the certificate of the server. API servers see new authorities a little
// later than they are published. So a new certificate waits until settle is called again,
// unless no API server trusts the one that is served now.
func (t *trust) serve(certificate *tls.Certificate, authorities []byte) {
	served := t.certificate.Load()
	if served == nil || bytes.Equal(t.published, authorities) || verify(served.Leaf, authorities, t.names, t.now()) != nil {
		t.certificate.Store(certificate)
	}
	t.published = authorities
}

// agree returns the data of the Secret. If the data is not usable, it writes a new
// certificate. If several replicas do so at the same time, the first one wins.
func (t *trust) agree(ctx context.Context) (map[string][]byte, error) {
	secrets := t.client.CoreV1().Secrets(t.namespace)
	for {
		secret, err := secrets.Get(ctx, t.secret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		problem := check(secret.Data, t.names, t.now())
		if problem == nil {
			return secret.Data, nil
		}
		secret.Data, err = issue(t.names, secret.Data[keyAuthorities], t.now())
		if err != nil {
			return nil, err
		}
		secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		if err == nil {
			klog.FromContext(ctx).Info("New certificate", "reason", problem.Error())
			return secret.Data, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
	}
}

// publication makes one webhook configuration trust the authorities.
type publication func(ctx context.Context, authorities []byte) error

// publications reads the webhook configurations.
func (t *trust) publications(ctx context.Context) (all []publication, err error) {
	api := t.client.AdmissionregistrationV1()
	if t.validating != "" {
		publish, err := publicationIn(ctx, api.ValidatingWebhookConfigurations(), "validating configuration "+t.validating, t.validating, validatingBundles)
		if err != nil {
			return nil, err
		}
		all = append(all, publish)
	}
	if t.mutating != "" {
		publish, err := publicationIn(ctx, api.MutatingWebhookConfigurations(), "mutating configuration "+t.mutating, t.mutating, mutatingBundles)
		if err != nil {
			return nil, err
		}
		all = append(all, publish)
	}
	return all, nil
}

// configurations are webhook configurations of one kind.
type configurations[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, config T, options metav1.UpdateOptions) (T, error)
}

// publicationIn reads the configuration with this name. what is its name in errors. The
// publication fails if the configuration has changed since.
func publicationIn[T any](ctx context.Context, api configurations[T], what, name string, bundles func(T) []*[]byte) (publication, error) {
	config, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return func(ctx context.Context, authorities []byte) error {
		changed := false
		for _, bundle := range bundles(config) {
			changed = replace(bundle, authorities) || changed
		}
		if !changed {
			return nil
		}
		if _, err := api.Update(ctx, config, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("publish authorities in %s: %w", what, err)
		}
		return nil
	}, nil
}

func validatingBundles(config *admissionapi.ValidatingWebhookConfiguration) (bundles []*[]byte) {
	for i := range config.Webhooks {
		bundles = append(bundles, &config.Webhooks[i].ClientConfig.CABundle)
	}
	return bundles
}

func mutatingBundles(config *admissionapi.MutatingWebhookConfiguration) (bundles []*[]byte) {
	for i := range config.Webhooks {
		bundles = append(bundles, &config.Webhooks[i].ClientConfig.CABundle)
	}
	return bundles
}

func replace(bundle *[]byte, authorities []byte) (changed bool) {
	changed = !bytes.Equal(*bundle, authorities)
	*bundle = authorities
	return changed
}
