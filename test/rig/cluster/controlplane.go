package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func (r *Cluster) apiServer(host string) string {
	return fmt.Sprintf("https://%s:%d", host, r.Ports.APIServer)
}

// StartControlPlane starts etcd, the API server, its controllers and the scheduler from
// the programs in two folders, and waits for the API server to be ready. Self is the
// program whose "proxy" command carries connections into the nodes. Gates is a list as
// --feature-gates takes it, for every component. More are further flags of the programs
// apiserver, controller-manager and scheduler, which override those of the rig.
func (r *Cluster) StartControlPlane(ctx context.Context, bin, kubernetes, self, gates string, more map[string][]string) error {
	if err := os.WriteFile(r.Path("egress.yaml"), fmt.Appendf(nil, egressConfig, r.Path("proxy.sock")), 0o600); err != nil {
		return err
	}
	etcd, peer := fmt.Sprintf("http://127.0.0.1:%d", r.Ports.Etcd), fmt.Sprintf("http://127.0.0.1:%d", r.Ports.EtcdPeer)
	err := r.start(0, "etcd", filepath.Join(bin, "etcd"), "--name=rig", "--data-dir="+r.Path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=rig="+peer)
	if err != nil {
		return err
	}
	if err := r.start(1, "proxy", self, "proxy", r.Dir); err != nil {
		return err
	}
	if err := r.start(2, "apiserver", slices.Concat([]string{filepath.Join(kubernetes, "kube-apiserver")}, r.apiServerFlags(etcd, gates), more["apiserver"])...); err != nil {
		return err
	}
	if err := r.waitAPIServer(ctx); err != nil {
		return err
	}
	err = r.start(3, "controller-manager", append([]string{
		filepath.Join(kubernetes, "kube-controller-manager"), "--kubeconfig=" + r.Path("controller-manager.kubeconfig"),
		"--service-account-private-key-file=" + r.Path("service-account.key"), "--root-ca-file=" + r.Path("ca.crt"),
		"--use-service-account-credentials", "--secure-port=0", "--leader-elect=false", "--feature-gates=" + gates,
	}, more["controller-manager"]...)...)
	if err != nil {
		return err
	}
	// A claim that is both in flight and in the scheduler's cache can count twice against
	// a shared device. A pod that does not fit for that moment is looked at again when
	// something changes, else after this time, which is 5 minutes by default.
	return r.start(4, "scheduler", append([]string{
		filepath.Join(kubernetes, "kube-scheduler"), "--kubeconfig=" + r.Path("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", r.Ports.Scheduler), "--client-ca-file=" + r.Path("ca.crt"),
		"--tls-cert-file=" + r.Path("apiserver.crt"), "--tls-private-key-file=" + r.Path("apiserver.key"), // it has that address
		"--leader-elect=false", "--pod-max-in-unschedulable-pods-duration=30s", "--feature-gates=" + gates,
	}, more["scheduler"]...)...)
}

func (r *Cluster) apiServerFlags(etcd, gates string) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", r.Ports.APIServer),
		// No endpoints are kept, so the address is never used; it has to be one that is
		// not the loopback.
		"--endpoint-reconciler-type=none", "--advertise-address=10.96.255.1",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--client-ca-file=" + r.Path("ca.crt"),
		"--tls-cert-file=" + r.Path("apiserver.crt"), "--tls-private-key-file=" + r.Path("apiserver.key"),
		"--kubelet-client-certificate=" + r.Path("apiserver-kubelet.crt"), "--kubelet-client-key=" + r.Path("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + r.Path("service-account.pub"), "--service-account-signing-key-file=" + r.Path("service-account.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged", "--enable-aggregator-routing",
		"--egress-selector-config-file=" + r.Path("egress.yaml"),
		"--feature-gates=" + gates,
	}
}

// egressConfig sends what the API server says to kubelets, and to webhooks and API
// servers in pods, through our proxy.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// auditPolicy has each write logged by whom and of what it was, once it is answered. The
// leases of kubelets would be most of the log.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  userGroups: [system:nodes]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
`

// Audit returns flags of the API server by which it logs all writes but the leases of
// kubelets in audit.log among the cluster's logs: one audit.k8s.io/v1 Event in JSON on each
// line. It writes the policy.
func (r *Cluster) Audit() ([]string, error) {
	policy := r.Path("audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + r.Path("logs", "audit.log"), "--audit-log-maxbackup=1"}, nil
}

// admission refuses pods that their namespace does not allow.
const admission = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: latest}
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-node-critical, system-cluster-critical]}]
`

// StrictAdmission returns a flag of the API server by which namespaces without a label have the
// Pod Security level baseline, and none has critical pods without a ResourceQuota for them. It
// writes the configuration.
func (r *Cluster) StrictAdmission() (string, error) {
	file := r.Path("admission.yaml")
	return "--admission-control-config-file=" + file, os.WriteFile(file, []byte(admission), 0o600)
}

// Client talks to the API server as administrator.
func (r *Cluster) Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.Path("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// waitAPIServer gives up at once when the API server has ended.
func (r *Cluster) waitAPIServer(ctx context.Context) error {
	c, err := r.Client()
	if err != nil {
		return err
	}
	begin := time.Now()
	var ended error
	err = eventually(r.patiently(90*time.Second), 200*time.Millisecond, func() error {
		if ended = ctx.Err(); ended != nil {
			return nil
		}
		if _, alive := r.alive(pidFile(2, "apiserver")); !alive {
			ended = fmt.Errorf("it has ended: %s", tail(r.Path("logs", "apiserver.log"), 5))
			return nil
		}
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	if err := cmp.Or(ended, err); err != nil {
		return fmt.Errorf("wait for kube-apiserver: %w", err)
	}
	r.logf("control plane ready after %.1f s", time.Since(begin).Seconds())
	return nil
}
