package kubeletplugin

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	resourcev1 "k8s.io/client-go/kubernetes/typed/resource/v1"
	resourcev1beta1 "k8s.io/client-go/kubernetes/typed/resource/v1beta1"
	resourcev1beta2 "k8s.io/client-go/kubernetes/typed/resource/v1beta2"
	"k8s.io/client-go/rest"
)

// The kubelet's default limits for its own requests to the API server. With the lower
// defaults of client-go, the daemon of a node full of claims would start slowly.
const (
	clientQPS   = 50
	clientBurst = 100
)

// client has the APIs that the daemon and the kubelet helper use, and no other API: a
// call of another one panics. A client of all APIs would be a third of the program,
// most of it in memory.
type client struct {
	kubernetes.Interface // nil

	core            *corev1.CoreV1Client
	events          *eventsv1.EventsV1Client
	resource        *resourcev1.ResourceV1Client
	resourceV1beta1 *resourcev1beta1.ResourceV1beta1Client // the helper falls back to the
	resourceV1beta2 *resourcev1beta2.ResourceV1beta2Client // betas where there is no v1
}

func (c *client) CoreV1() corev1.CoreV1Interface             { return c.core }
func (c *client) EventsV1() eventsv1.EventsV1Interface       { return c.events }
func (c *client) ResourceV1() resourcev1.ResourceV1Interface { return c.resource }
func (c *client) ResourceV1beta1() resourcev1beta1.ResourceV1beta1Interface {
	return c.resourceV1beta1
}

func (c *client) ResourceV1beta2() resourcev1beta2.ResourceV1beta2Interface {
	return c.resourceV1beta2
}

// NewClient returns the daemon's client of the API server that config names. It has the
// daemon's name, encoding and limits, whatever config says, and only the APIs that the
// daemon uses. Its requests are counted.
func NewClient(config *rest.Config, requests *APIRequests) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "dra-numa"
	// JSON would not keep a claim's opaque parameters byte by byte, and the API server
	// would reject updates of the claim's status.
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS, config.Burst = clientQPS, clientBurst
	config.Wrap(requests.Count)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	var c client
	for _, make := range []func() error{
		func() (err error) { c.core, err = corev1.NewForConfigAndClient(config, transport); return err },
		func() (err error) { c.events, err = eventsv1.NewForConfigAndClient(config, transport); return err },
		func() (err error) { c.resource, err = resourcev1.NewForConfigAndClient(config, transport); return err },
		func() (err error) {
			c.resourceV1beta1, err = resourcev1beta1.NewForConfigAndClient(config, transport)
			return err
		},
		func() (err error) {
			c.resourceV1beta2, err = resourcev1beta2.NewForConfigAndClient(config, transport)
			return err
		},
	} {
		if err := make(); err != nil {
			return nil, err
		}
	}
	return &c, nil
}
