package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	admissionapi "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// settlePeriod is how long API servers have to notice new authorities before a certificate
// of these is served.
const settlePeriod = time.Minute

// renewer keeps the certificate in the Secret, and has the API server trust it. A new
// certificate is trusted before it is served: it gets into the Secret, from where kubelets
// give it to the webhook, when its authority has been published for settlePeriod. Until it
// expires, the old one stays trusted. Only one goroutine may call settle.
type renewer struct {
	Options
	now func() time.Time

	next      map[string][]byte // what the Secret gets; nil if it is as it should be
	published time.Time         // when the configurations got the authorities of next
}

// settle does everything that is necessary. It may be repeated at any time. It returns when
// it has something to do next, if that is known.
//
// It reads the webhook configurations before the Secret. So if another renewer has since
// written the Secret and published its authorities, the API server refuses to replace these.
func (r *renewer) settle(ctx context.Context) (again time.Duration, err error) {
	publications, err := r.publications(ctx)
	if err != nil {
		return 0, err
	}
	secrets := r.Client.CoreV1().Secrets(r.Namespace)
	secret, err := secrets.Get(ctx, r.Secret, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read secret %s/%s: %w", r.Namespace, r.Secret, err)
	}
	problem := check(secret.Data, r.Names, r.now())
	if problem == nil {
		r.next = nil
		_, err := publish(ctx, publications, secret.Data[KeyAuthorities])
		return 0, err
	}
	if r.next == nil || check(r.next, r.Names, r.now()) != nil || !bytes.HasSuffix(r.next[KeyAuthorities], stillValid(secret.Data[KeyAuthorities], r.now())) {
		if r.next, err = Issue(r.Names, secret.Data[KeyAuthorities], r.now()); err != nil {
			return 0, fmt.Errorf("make a certificate: %w", err)
		}
		r.published = time.Time{}
	}
	changed, err := publish(ctx, publications, r.next[KeyAuthorities])
	if err != nil {
		return 0, err
	}
	if changed || r.published.IsZero() {
		r.published = r.now()
	}
	if wait := r.published.Add(settlePeriod).Sub(r.now()); wait > 0 && r.serves(secret.Data) {
		return wait, nil
	}
	secret.Data = r.next
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return 0, fmt.Errorf("keep certificate in secret %s/%s: %w", r.Namespace, r.Secret, err)
	}
	klog.FromContext(ctx).Info("New certificate", "reason", problem.Error())
	r.next = nil
	return 0, nil
}

// serves reports whether API servers may trust what is served now. If they cannot, nothing is
// lost by serving something else at once.
func (r *renewer) serves(data map[string][]byte) bool {
	pair, err := tls.X509KeyPair(data[KeyCertificate], data[KeyPrivate])
	return err == nil && verify(pair.Leaf, data[KeyAuthorities], r.Names, r.now()) == nil
}

// publication makes one webhook configuration trust the authorities.
type publication func(ctx context.Context, authorities []byte) (changed bool, err error)

func publish(ctx context.Context, publications []publication, authorities []byte) (changed bool, err error) {
	for _, publication := range publications {
		one, err := publication(ctx, authorities)
		if err != nil {
			return changed, err
		}
		changed = changed || one
	}
	return changed, nil
}

// publications reads the webhook configurations.
func (r *renewer) publications(ctx context.Context) (all []publication, err error) {
	api := r.Client.AdmissionregistrationV1()
	if r.Validating != "" {
		publication, err := publicationIn(ctx, api.ValidatingWebhookConfigurations(), "validating configuration "+r.Validating, r.Validating, validatingBundles)
		if err != nil {
			return nil, err
		}
		all = append(all, publication)
	}
	if r.Mutating != "" {
		publication, err := publicationIn(ctx, api.MutatingWebhookConfigurations(), "mutating configuration "+r.Mutating, r.Mutating, mutatingBundles)
		if err != nil {
			return nil, err
		}
		all = append(all, publication)
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
	return func(ctx context.Context, authorities []byte) (changed bool, err error) {
		for _, bundle := range bundles(config) {
			changed = replace(bundle, authorities) || changed
		}
		if !changed {
			return false, nil
		}
		if _, err := api.Update(ctx, config, metav1.UpdateOptions{}); err != nil {
			return false, fmt.Errorf("publish authorities in %s: %w", what, err)
		}
		klog.FromContext(ctx).Info("Published authorities", "in", what)
		return true, nil
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
