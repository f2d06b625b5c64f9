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
// trusted as long as a replica may serve it.
type trust struct {
	client               kubernetes.Interface
	namespace, secret    string
	names                []string // of the webhook's server
	validating, mutating string   // webhook configurations; "" means none
	now                  func() time.Time
	certificate          atomic.Pointer[tls.Certificate]
}

// settle does everything that is necessary. Any replica may repeat it at any time.
func (t *trust) settle(ctx context.Context) error {
	data, err := t.agree(ctx)
	if err != nil {
		return fmt.Errorf("keep certificate in secret %s/%s: %w", t.namespace, t.secret, err)
	}
	certificate, err := load(data)
	if err != nil {
		return fmt.Errorf("load certificate of secret %s/%s: %w", t.namespace, t.secret, err)
	}
	if err := t.publish(ctx, data[keyAuthorities]); err != nil {
		return err
	}
	t.certificate.Store(certificate)
	return nil
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

// publish makes both configurations trust the authorities.
func (t *trust) publish(ctx context.Context, authorities []byte) error {
	api := t.client.AdmissionregistrationV1()
	if t.validating != "" {
		if err := publishIn(ctx, api.ValidatingWebhookConfigurations(), t.validating, authorities, validatingBundles); err != nil {
			return fmt.Errorf("publish authorities in validating configuration %s: %w", t.validating, err)
		}
	}
	if t.mutating != "" {
		if err := publishIn(ctx, api.MutatingWebhookConfigurations(), t.mutating, authorities, mutatingBundles); err != nil {
			return fmt.Errorf("publish authorities in mutating configuration %s: %w", t.mutating, err)
		}
	}
	return nil
}

// configurations are webhook configurations of one kind.
type configurations[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, config T, options metav1.UpdateOptions) (T, error)
}

// publishIn makes the webhooks of one configuration trust the authorities.
func publishIn[T any](ctx context.Context, api configurations[T], name string, authorities []byte, bundles func(T) []*[]byte) error {
	config, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	changed := false
	for _, bundle := range bundles(config) {
		changed = replace(bundle, authorities) || changed
	}
	if changed {
		_, err = api.Update(ctx, config, metav1.UpdateOptions{})
	}
	return err
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
