package diagnosis

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// distribution is what differs between clusters that are set up by different programs and
// providers. The facts are from the manifests that these publish.
type distribution struct {
	server, kubelet, runtime, kernel string // versions
	node                             string
	labels, annotations              string // of the node, in YAML
	// exclusivity is what the driver makes of auto on the kernel.
	exclusivity string
	image       string // of the driver's pods: policies and mirrors rewrite it
	settings    Kubelet
	pods        []systemPod
}

// systemPod is a pod of the distribution on the node.
type systemPod struct {
	namespace, name string
	owner           string // kind and name of its controller
	labels          string
	image           string
	cpu             string
	priority        string // class
	command         string
	more            string // further fields
}

func (p systemPod) yaml(node string) string {
	kind, name, _ := strings.Cut(p.owner, " ")
	annotations := ""
	if kind == "Node" {
		annotations = `, annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: "1f"}`
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s, uid: %[2]s, labels: {%s}, ownerReferences: [{apiVersion: v1, kind: %s, name: %s, uid: of-%[2]s, controller: true}]%[6]s}
spec:
  nodeName: %s
  priorityClassName: %q
  containers: [{name: main, image: %q, command: [%s], resources: {requests: {cpu: %s, memory: 50Mi}}}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
%s---`, p.namespace, p.name, p.labels, kind, name, annotations, node, p.priority, p.image, p.command, p.cpu, p.more)
}

const (
	critical = "system-node-critical"
	digest   = "@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

func distributions() map[string]distribution {
	static := func(name, program, image string, arguments ...string) systemPod {
		quoted := append([]string{program}, arguments...)
		for i, word := range quoted {
			quoted[i] = fmt.Sprintf("%q", word)
		}
		return systemPod{"kube-system", program + "-" + name, "Node " + name, "component: " + program + ", tier: control-plane", image, "100m", critical, strings.Join(quoted, ", "), ""}
	}
	daemon := func(namespace, name, labels, image string) systemPod {
		return systemPod{namespace, name + "-x7k2p", "DaemonSet " + name, labels + ", controller-revision-hash: 5d8f, pod-template-generation: '3'", image, "25m", critical, "", ""}
	}
	replica := func(namespace, name, labels, image string) systemPod {
		return systemPod{namespace, name + "-6b7c-9xk4d", "ReplicaSet " + name + "-6b7c", labels + ", pod-template-hash: 6b7c", image, "50m", "system-cluster-critical", "", ""}
	}
	none := Kubelet{CPUManagerPolicy: "none", MemoryManagerPolicy: "None", TopologyManagerPolicy: "none"}
	return map[string]distribution{
		"kubeadm": {
			server: "v1.37.1", kubelet: "v1.37.1", runtime: "containerd://2.2.1", kernel: "6.12.57+deb13-amd64", node: "cp-1", exclusivity: "kernel", settings: none,
			labels:      `node-role.kubernetes.io/control-plane: "", node.kubernetes.io/exclude-from-external-load-balancers: ""`,
			annotations: `kubeadm.alpha.kubernetes.io/cri-socket: unix:///var/run/containerd/containerd.sock`,
			image:       "mirror.example.com/dra-driver-numa" + digest,
			pods: []systemPod{
				static("cp-1", "etcd", "registry.k8s.io/etcd:3.6.5-0"), static("cp-1", "kube-apiserver", "registry.k8s.io/kube-apiserver:v1.37.1"),
				static("cp-1", "kube-controller-manager", "registry.k8s.io/kube-controller-manager:v1.37.1", "--leader-elect=true", "--use-service-account-credentials=true"),
				static("cp-1", "kube-scheduler", "registry.k8s.io/kube-scheduler:v1.37.1", "--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true"),
				daemon("kube-system", "kube-proxy", "k8s-app: kube-proxy", "registry.k8s.io/kube-proxy:v1.37.1"), replica("kube-system", "coredns", "k8s-app: kube-dns", "registry.k8s.io/coredns/coredns:v1.13.1"),
			},
		},
		"k3s": {
			server: "v1.37.1+k3s1", kubelet: "v1.37.1+k3s1", runtime: "containerd://2.1.5-k3s1", kernel: "6.8.0-85-generic", node: "edge", exclusivity: "cooperative", settings: none,
			labels:      `node-role.kubernetes.io/control-plane: "true", node.kubernetes.io/instance-type: k3s, beta.kubernetes.io/instance-type: k3s`,
			annotations: `k3s.io/node-args: '["server"]', k3s.io/internal-ip: 10.0.0.7`,
			image:       "d:1",
			pods: []systemPod{
				replica("kube-system", "coredns", "k8s-app: kube-dns", "rancher/mirrored-coredns-coredns:1.13.1"), replica("kube-system", "local-path-provisioner", "app: local-path-provisioner", "rancher/local-path-provisioner:v0.0.32"),
				replica("kube-system", "metrics-server", "k8s-app: metrics-server", "rancher/mirrored-metrics-server:v0.8.0"), daemon("kube-system", "svclb-traefik-1d2e", "app: svclb-traefik-1d2e", "rancher/klipper-lb:v0.4.13"),
			},
		},
		"RKE2": {
			server: "v1.37.0+rke2r1", kubelet: "v1.37.0+rke2r1", runtime: "containerd://2.1.5-k3s1", kernel: "6.4.0-150700.53.11-default", node: "server-1", exclusivity: "cooperative", settings: none,
			labels:      `node-role.kubernetes.io/control-plane: "true", node-role.kubernetes.io/etcd: "true", node.kubernetes.io/instance-type: rke2`,
			annotations: `rke2.io/node-args: '["server"]', etcd.rke2.cattle.io/node-name: server-1`,
			image:       "harbor.example.com/dra-driver-numa:1" + digest,
			pods: []systemPod{
				static("server-1", "etcd", "index.docker.io/rancher/hardened-etcd:v3.6.5-k3s1"), static("server-1", "kube-apiserver", "index.docker.io/rancher/hardened-kubernetes:v1.37.0-rke2r1"),
				static("server-1", "kube-controller-manager", "index.docker.io/rancher/hardened-kubernetes:v1.37.0-rke2r1", "--profiling=false"),
				static("server-1", "kube-scheduler", "index.docker.io/rancher/hardened-kubernetes:v1.37.0-rke2r1", "--profiling=false", "--secure-port=10259"),
				daemon("kube-system", "rke2-canal", "k8s-app: canal", "rancher/hardened-calico:v3.31.0"), daemon("kube-system", "rke2-ingress-nginx-controller", "app.kubernetes.io/name: rke2-ingress-nginx", "rancher/nginx-ingress-controller:v1.13.4"),
			},
		},
		"EKS": {
			server: "v1.37.1-eks-113cf36", kubelet: "v1.37.0-eks-ecaa3a6", runtime: "containerd://2.1.4", kernel: "6.12.55-74.119.amzn2023.x86_64", node: "ip-10-0-10-170.ec2.internal", exclusivity: "kernel",
			settings:    Kubelet{CPUManagerPolicy: "none", MemoryManagerPolicy: "None", TopologyManagerPolicy: "none", FeatureGates: map[string]bool{"MutableCSINodeAllocatableCount": true}},
			labels:      `eks.amazonaws.com/nodegroup: numa, eks.amazonaws.com/capacityType: ON_DEMAND, node.kubernetes.io/instance-type: m7i.metal-24xl, topology.k8s.aws/zone-id: use1-az1`,
			annotations: `cluster-autoscaler.kubernetes.io/scale-down-disabled: "true", alpha.kubernetes.io/provided-node-ip: 10.0.10.170`, // what a node with zones needs beside Cluster Autoscaler
			image:       "111122223333.dkr.ecr.us-east-1.amazonaws.com/dra-driver-numa" + digest,
			pods: []systemPod{
				daemon("kube-system", "aws-node", "app.kubernetes.io/name: aws-node, app.kubernetes.io/instance: aws-vpc-cni, k8s-app: aws-node", "602401143452.dkr.ecr.us-east-1.amazonaws.com/amazon-k8s-cni:v1.20.4-eksbuild.1"),
				daemon("kube-system", "kube-proxy", "k8s-app: kube-proxy", "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/kube-proxy:v1.37.0-minimal-eksbuild.2"),
				replica("kube-system", "coredns", "eks.amazonaws.com/component: coredns, k8s-app: kube-dns", "602401143452.dkr.ecr.us-east-1.amazonaws.com/eks/coredns:v1.13.1-eksbuild.1"),
				replica("kube-system", "cluster-autoscaler", "app: cluster-autoscaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.37.0"),
			},
		},
		"GKE": {
			server: "v1.37.1-gke.1150000", kubelet: "v1.37.1-gke.1150000", runtime: "containerd://2.0.7", kernel: "6.6.113+", node: "gke-a-numa-1f2e3d4c-x7k2", exclusivity: "cooperative", settings: none,
			labels:      `cloud.google.com/gke-nodepool: numa, cloud.google.com/gke-os-distribution: cos, cloud.google.com/gke-container-runtime: containerd, iam.gke.io/gke-metadata-server-enabled: "true"`,
			annotations: `container.googleapis.com/instance_id: "42", node.gke.io/last-applied-node-labels: cloud.google.com/gke-nodepool=numa`,
			image:       "us-docker.pkg.dev/project/mirror/dra-driver-numa" + digest,
			pods: []systemPod{
				{"kube-system", "kube-proxy-gke-a-numa-1f2e3d4c-x7k2", "Node gke-a-numa-1f2e3d4c-x7k2", "component: kube-proxy, tier: node", "gke.gcr.io/kube-proxy-amd64:v1.37.1-gke.1150000", "100m", critical, "/bin/sh, -c, exec kube-proxy", ""},
				daemon("kube-system", "fluentbit-gke", "component: fluentbit-gke, k8s-app: fluentbit-gke", "gke.gcr.io/fluent-bit"+digest), daemon("kube-system", "gke-metadata-server", "k8s-app: gke-metadata-server", "gke.gcr.io/gke-metadata-server"+digest),
				daemon("kube-system", "pdcsi-node", "k8s-app: gcp-compute-persistent-disk-csi-driver", "gke.gcr.io/gcp-compute-persistent-disk-csi-driver"+digest), daemon("gmp-system", "collector", "app.kubernetes.io/name: collector", "gke.gcr.io/prometheus-engine/prometheus"+digest),
			},
		},
		"OpenShift": {
			server: "v1.37.1", kubelet: "v1.37.1", runtime: "cri-o://1.37.0-3.rhaos5.0.git1f2e3d4.el9", kernel: "5.14.0-570.83.1.el9_6.x86_64", node: "worker-0.example.com", exclusivity: "cooperative", settings: none,
			labels:      `node-role.kubernetes.io/worker: "", node.openshift.io/os_id: rhel`,
			annotations: `machineconfiguration.openshift.io/state: Done, machineconfiguration.openshift.io/currentConfig: rendered-worker-1f2e`,
			image:       "registry.example.com/dra-driver-numa" + digest,
			pods: []systemPod{
				daemon("openshift-machine-config-operator", "machine-config-daemon", "k8s-app: machine-config-daemon", "quay.io/openshift-release-dev/ocp-v5.0-art-dev"+digest),
				daemon("openshift-cluster-node-tuning-operator", "tuned", "openshift-app: tuned", "quay.io/openshift-release-dev/ocp-v5.0-art-dev"+digest), daemon("openshift-ovn-kubernetes", "ovnkube-node", "app: ovnkube-node", "quay.io/openshift-release-dev/ocp-v5.0-art-dev"+digest),
				{"openshift-kube-scheduler", "openshift-kube-scheduler-worker-0", "Node worker-0.example.com", "app: openshift-kube-scheduler, scheduler: 'true'", "quay.io/openshift-release-dev/ocp-v5.0-art-dev" + digest, "15m", critical, "hyperkube, kube-scheduler, --feature-gates=OpenShift=true", ""},
				replica("openshift-machine-api", "cluster-autoscaler-default", "k8s-app: cluster-autoscaler", "quay.io/openshift-release-dev/ocp-v5.0-art-dev"+digest),
			},
		},
	}
}

// facts are those of the healthy cluster, on a node of the distribution.
func (d distribution) facts(t *testing.T) *Facts {
	t.Helper()
	facts := healthy(t)
	text := healthyObjects[strings.Index(healthyObjects, "---"):]
	text = strings.NewReplacer("nodeName: n1", "nodeName: "+d.node, "name: n1,", "name: "+d.node+",", "pool: n1\n", "pool: "+d.node+"\n", `image: "d:1"`, fmt.Sprintf("image: %q", d.image)).Replace(text)
	text = fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {kubernetes.io/os: linux, kubernetes.io/arch: amd64, kubernetes.io/hostname: %[1]s, %s}, annotations: {%s}}
status:
  allocatable: {cpu: 8, memory: 8Gi, pods: 110, hugepages-1Gi: 0, hugepages-2Mi: 0}
  nodeInfo: {kubeletVersion: %s, kernelVersion: %s, containerRuntimeVersion: "%s"}
`, d.node, d.labels, d.annotations, d.kubelet, d.kernel, d.runtime) + text
	for _, pod := range d.pods {
		text += "\n---" + strings.TrimSuffix(pod.yaml(d.node), "---")
	}
	classes := facts.Objects.Classes
	facts.Objects = object.Snapshot(t, text)
	facts.Objects.Classes = classes
	for i := range facts.Objects.Slices[0].Spec.Devices {
		facts.Objects.Slices[0].Spec.Devices[i].Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To(d.exclusivity)}
	}
	facts.revisions("3", "3")
	facts.Version, facts.Kubelets = d.server, map[string]Kubelet{d.node: d.settings}
	facts.Gates["DRADeviceTaints"], facts.Gates["DRAPrioritizedList"], facts.Gates["DRAAdminAccess"] = true, true, true
	return facts
}

// A cluster with the driver has no finding, whoever has set it up, also if its nodes are
// asked.
func TestDistributionsHaveNoFinding(t *testing.T) {
	for name, d := range distributions() {
		t.Run(name, func(t *testing.T) {
			facts := d.facts(t)
			for _, finding := range Validate(facts) {
				t.Errorf("found %s", line(finding))
			}
			facts.States = map[string]*nodestate.State{d.node: {Host: &nodestate.Host{NRI: ptr.To(true), Services: []string{"tuned"}}}}
			for _, finding := range Validate(facts) {
				t.Errorf("of the node, found %s", line(finding))
			}
			if versions := VersionsOf(facts, "v0.1.0"); strings.Contains(fmt.Sprint(versions.Skew), "the rollout has not finished") {
				t.Errorf("skew is %+v", versions.Skew)
			}
			if got := facts.Nodes(); len(got) != 1 || got[0] != d.node || len(facts.DaemonPods()) != 1 {
				t.Errorf("nodes are %q, want %q with a pod of the driver", got, d.node)
			}
		})
	}
}

// Pods for which a NodeConfig reserves hugepages are no finding.
func TestPodsOnReservedHugepagesAreNoFinding(t *testing.T) {
	facts := healthy(t)
	for _, b := range breakages() {
		if b.what == "more hugepages without a claim than are reserved" {
			b.do(facts)
		}
	}
	facts.Objects.Nodes[0].Status.Allocatable["hugepages-2Mi"] = *ptr.To(facts.zone().Capacity["hugepages2Mi"].Value)
	if findings := Validate(facts); len(findings) != 1 {
		t.Errorf("nothing is reserved, and findings are %+v", findings)
	}
	more := facts.Objects.Nodes[0].Status.Allocatable["hugepages-2Mi"]
	more.Add(facts.daemonPod().Spec.Containers[0].Resources.Limits["hugepages-2Mi"])
	facts.Objects.Nodes[0].Status.Allocatable["hugepages-2Mi"] = more
	if findings := Validate(facts); len(findings) != 0 {
		t.Errorf("as much is reserved, and findings are %+v", findings)
	}
}

// A NodeConfig may ask for another exclusivity on each node. Only a bundle has it.
func TestExclusivityOfANodeConfig(t *testing.T) {
	const profile = "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nexclusivity: none\nprofiles: [{nodeSelector: {pool: batch}, exclusivity: cooperative}]\n"
	for name, row := range map[string]struct{ config, pool, published, want string }{
		"as it says":                {profile, "", "none", ""},
		"as a profile says":         {profile, "batch", "cooperative", ""},
		"other than a profile says": {profile, "batch", "none", "cooperative"},
		"nothing":                   {"apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n", "", "cooperative", "kernel, which needs Linux 6.11 or newer"},
		"not known":                 {"", "", "none", ""},
	} {
		facts := healthy(t)
		*facts.daemonArgs() = append(*facts.daemonArgs(), "--config=/config/node.yaml")
		if row.config != "" {
			facts.Installation.ConfigMaps = []*corev1.ConfigMap{{Data: map[string]string{ConfigKey: row.config}}}
		}
		facts.Objects.Nodes[0].Labels = map[string]string{"pool": row.pool}
		for i := range facts.Objects.Slices[0].Spec.Devices {
			facts.Objects.Slices[0].Spec.Devices[i].Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: &row.published}
		}
		var expected []string
		for _, finding := range zoneExclusivity(facts) {
			expected = append(expected, finding.Expected)
		}
		if got := strings.Join(expected, "; "); got != row.want {
			t.Errorf("%s: expected is %q, want %q", name, got, row.want)
		}
	}
}
