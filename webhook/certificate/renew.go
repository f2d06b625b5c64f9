// Package certificate makes and renews the certificate of the webhook, and has the API
// server trust it. It is a program of its own, because its rights are those of the whole
// cluster: who can change a webhook configuration can have API servers send all objects
// anywhere. So it reads nothing that a tenant can write, and the webhook, which does, has
// none of these rights.
package certificate

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// checkPeriod is the time between two looks when nothing has changed: certificates
	// expire.
	checkPeriod = 10 * time.Minute
	// retryPeriod is the time until a failed look is repeated.
	retryPeriod = 2 * time.Second
	// pause is the least time between two looks: another program may undo each of our
	// changes.
	pause = time.Second
)

// Options are the settings of Renew.
type Options struct {
	Client kubernetes.Interface
	// Namespace and Secret name the Secret of the certificate. It must exist, and may be
	// empty at first.
	Namespace, Secret string
	// Names are the DNS names and addresses by which the API server reaches the webhook.
	Names []string
	// Validating and Mutating name the webhook configurations that must trust the
	// certificate; "" means none.
	Validating, Mutating string
}

// Renew keeps the certificate valid and trusted until ctx ends. It watches the Secret and the
// webhook configurations, so that what somebody breaks is mended in seconds.
func Renew(ctx context.Context, options Options) error {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	stop, err := watch(ctx, options, changed)
	if err != nil {
		cancel()
		return err
	}
	defer stop()
	defer cancel() // runs before stop, which waits for the watches
	renewer := &renewer{Options: options, now: time.Now}
	for {
		again, err := renewer.settle(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case apierrors.IsConflict(err): // somebody else has written first
			klog.FromContext(ctx).V(4).Info("Trying again", "reason", err.Error())
			again = pause
		case err != nil:
			klog.FromContext(ctx).Error(err, "Certificate check failed, trying again")
			again = retryPeriod
		case again == 0:
			again = checkPeriod
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(again):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// watch sends to changed when the Secret or a configuration may have changed. The watches end
// when ctx ends; stop waits for that.
func watch(ctx context.Context, options Options, changed chan<- struct{}) (stop func(), err error) {
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // it is told already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() }, DeleteFunc: func(any) { tell() },
	}
	named := func(name string) informers.SharedInformerOption { // a right may be for one object only
		return informers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		})
	}
	var factories []informers.SharedInformerFactory
	var failed error
	add := func(name, namespace string, informer func(informers.SharedInformerFactory) cache.SharedIndexInformer) {
		if name == "" {
			return
		}
		factory := informers.NewSharedInformerFactoryWithOptions(options.Client, 0, informers.WithNamespace(namespace), named(name))
		_, err := informer(factory).AddEventHandler(handler)
		failed = errors.Join(failed, err)
		factories = append(factories, factory)
	}
	add(options.Secret, options.Namespace, func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Core().V1().Secrets().Informer()
	})
	add(options.Validating, "", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer()
	})
	add(options.Mutating, "", func(f informers.SharedInformerFactory) cache.SharedIndexInformer {
		return f.Admissionregistration().V1().MutatingWebhookConfigurations().Informer()
	})
	if failed != nil {
		return nil, failed
	}
	for _, factory := range factories {
		factory.Start(ctx.Done())
	}
	return func() {
		for _, factory := range factories {
			factory.Shutdown()
		}
	}, nil
}
