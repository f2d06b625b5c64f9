package chart

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// driverContainer returns the daemon's container, and its arguments about monitoring.
func driverContainer(t *testing.T, set ...string) (daemons appsv1.DaemonSet, driver corev1.Container, args []string) {
	t.Helper()
	daemons = object[appsv1.DaemonSet](t, mustRender(t, set...), "DaemonSet")
	driver = daemons.Spec.Template.Spec.Containers[0]
	for _, arg := range driver.Args {
		if strings.HasPrefix(arg, "--metrics") || strings.HasPrefix(arg, "--pprof") {
			args = append(args, arg)
		}
	}
	return daemons, driver, args
}

func TestMetricsAreOnAPortOfTheirOwn(t *testing.T) {
	for _, row := range []struct {
		set   []string
		args  []string
		ports int
	}{
		{nil, []string{"--metrics-listen=:8090"}, 2},
		{[]string{"metrics.enabled=false", "metrics.tls.secret=tls"}, nil, 1},
		{[]string{"metrics.port=9100", "pprof.enabled=true"}, []string{"--metrics-listen=:9100", "--pprof=127.0.0.1:6060"}, 2},
		{[]string{"metrics.tls.secret=tls"}, []string{"--metrics-listen=:8090", "--metrics-tls-cert=/metrics-tls/tls.crt", "--metrics-tls-key=/metrics-tls/tls.key"}, 2},
	} {
		_, driver, args := driverContainer(t, row.set...)
		if !slices.Equal(args, row.args) || len(driver.Ports) != row.ports {
			t.Errorf("%q: arguments %q and ports %v, want %q and %d ports", row.set, args, driver.Ports, row.args, row.ports)
		}
	}
}

// The daemon has no right to read Secrets: the kubelet mounts those that the values name.
func TestCertificatesOfMetricsAreMounted(t *testing.T) {
	daemons, driver, args := driverContainer(t, "metrics.tls.secret=server", "metrics.tls.clientCASecret=clients")
	if !slices.Contains(args, "--metrics-client-ca=/metrics-tls/ca.crt") {
		t.Errorf("arguments %q", args)
	}
	mount := slices.IndexFunc(driver.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "metrics-tls" })
	volume := slices.IndexFunc(daemons.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "metrics-tls" })
	if mount < 0 || volume < 0 {
		t.Fatal("the files of TLS are not mounted")
	}
	var mounted []string
	for _, source := range daemons.Spec.Template.Spec.Volumes[volume].Projected.Sources {
		for _, item := range source.Secret.Items {
			mounted = append(mounted, source.Secret.Name+"/"+item.Key+" as "+item.Path)
		}
	}
	if want := []string{"server/tls.crt as tls.crt", "server/tls.key as tls.key", "clients/ca.crt as ca.crt"}; !slices.Equal(mounted, want) || !driver.VolumeMounts[mount].ReadOnly {
		t.Errorf("mounted %q, read-only %t, want %q", mounted, driver.VolumeMounts[mount].ReadOnly, want)
	}
	if _, stderr, err := render(t, "metrics.tls.clientCASecret=clients"); err == nil || !strings.Contains(stderr, "metrics.tls.clientCASecret needs metrics.tls.secret") {
		t.Errorf("clients need certificates without TLS: %v, %s", err, stderr)
	}
}

// Of the pods of the daemon, only the port of the metrics is open.
func TestNetworkPolicyOpensTheMetrics(t *testing.T) {
	port := networking.NetworkPolicyPort{Port: new(intstr.FromString("metrics"))}
	peer := networking.NetworkPolicyPeer{IPBlock: &networking.IPBlock{CIDR: "10.0.0.1/32"}}
	for set, want := range map[string][]networking.NetworkPolicyIngressRule{
		"metrics.enabled=true":  {{Ports: []networking.NetworkPolicyPort{port}}},
		"metrics.enabled=false": nil,
		"metrics.networkPolicy.ingressFrom[0].ipBlock.cidr=10.0.0.1/32": {{
			Ports: []networking.NetworkPolicyPort{port}, From: []networking.NetworkPolicyPeer{peer},
		}},
	} {
		rendered := mustRender(t, "metrics.networkPolicy.enabled=true", set)
		got := object[networking.NetworkPolicy](t, rendered, "NetworkPolicy").Spec
		daemons := named[appsv1.DaemonSet](t, rendered, "DaemonSet", "dra-driver-numa").Spec
		if diff := cmp.Diff(networking.NetworkPolicySpec{
			PodSelector: *daemons.Selector, PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress}, Ingress: want,
		}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", set, diff)
		}
	}
}

func TestPodMonitorFindsTheDaemons(t *testing.T) {
	type podMonitor struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			JobLabel            string
			Selector            struct{ MatchLabels map[string]string }
			PodMetricsEndpoints []struct {
				Port, Interval, Scheme string
				HonorLabels            bool
				TLSConfig              map[string]any `json:"tlsConfig"`
			}
		}
	}
	find := func(set ...string) (found []podMonitor) {
		for _, document := range documents(mustRender(t, set...)) {
			if strings.Contains(document, "kind: PodMonitor\n") {
				found = append(found, decode[podMonitor](t, document))
			}
		}
		return found
	}
	if found := find(); len(found) != 0 {
		t.Error("there is a PodMonitor in clusters that may not know it")
	}
	if found := find("metrics.enabled=false", "metrics.podMonitor.enabled=true"); len(found) != 0 {
		t.Error("there is a PodMonitor without metrics")
	}
	found := find("metrics.podMonitor.enabled=true", "metrics.podMonitor.labels.release=prometheus", "metrics.tls.secret=tls",
		"metrics.podMonitor.tlsConfig.insecureSkipVerify=true", "metrics.podMonitor.interval=15s", strings.Join(overrides, ","))
	if len(found) != 1 {
		t.Fatalf("%d PodMonitors, want 1", len(found))
	}
	daemons, driver, _ := driverContainer(t, overrides...)
	// Alerts and dashboards ask for this job.
	if job := daemons.Spec.Template.Labels[found[0].Spec.JobLabel]; job != "dra-driver-numa" {
		t.Errorf("the job is %q", job)
	}
	endpoint := found[0].Spec.PodMetricsEndpoints[0]
	for label, value := range found[0].Spec.Selector.MatchLabels {
		if daemons.Spec.Template.Labels[label] != value {
			t.Errorf("the PodMonitor selects %s=%s, the pods have %q", label, value, daemons.Spec.Template.Labels[label])
		}
	}
	named := slices.ContainsFunc(driver.Ports, func(port corev1.ContainerPort) bool { return port.Name == endpoint.Port })
	if !named || endpoint.HonorLabels || endpoint.Scheme != "https" || endpoint.Interval != "15s" || endpoint.TLSConfig["insecureSkipVerify"] != true || found[0].Metadata.Labels["release"] != "prometheus" {
		t.Errorf("PodMonitor %+v", found[0])
	}
}

// The rules are those of the file that Prometheus reads without the operator.
func TestAlertsAreThoseOfTheFile(t *testing.T) {
	type group struct {
		Name  string
		Rules []map[string]any
	}
	type spec struct{ Groups []group }
	file := decode[spec](t, files.Read(t, "../../deployments/helm/dra-driver-numa/monitoring/alerts.yaml"))
	find := func(set ...string) (found []spec) {
		for _, document := range documents(mustRender(t, set...)) {
			if strings.Contains(document, "kind: PrometheusRule\n") {
				found = append(found, decode[struct{ Spec spec }](t, document).Spec)
			}
		}
		return found
	}
	if found := find(); len(found) != 0 {
		t.Error("there is a PrometheusRule in clusters that may not know it")
	}
	if diff := cmp.Diff([]spec{file}, find("metrics.prometheusRule.enabled=true")); diff != "" {
		t.Errorf("rules (-file +chart):\n%s", diff)
	}
	for _, rule := range file.Groups[0].Rules {
		rule["for"] = "30s"
	}
	if diff := cmp.Diff([]spec{file}, find("metrics.prometheusRule.enabled=true", "metrics.prometheusRule.for=30s")); diff != "" {
		t.Errorf("rules with other times (-file +chart):\n%s", diff)
	}
}

// The sidecar of Grafana finds the ConfigMap, and gets the files as they are.
func TestDashboardsAreThoseOfTheFiles(t *testing.T) {
	const folder = "../../deployments/helm/dra-driver-numa/monitoring/dashboards/"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, entry := range entries {
		want["dra-driver-numa-"+entry.Name()] = files.Read(t, folder+entry.Name())
	}
	if rendered := mustRender(t); strings.Contains(rendered, "grafana") {
		t.Error("there are dashboards in clusters that may have no Grafana")
	}
	if rendered := mustRender(t, "metrics.enabled=false", "metrics.dashboards.enabled=true"); strings.Contains(rendered, "grafana") {
		t.Error("there are dashboards without metrics")
	}
	found := named[corev1.ConfigMap](t, mustRender(t, "metrics.dashboards.enabled=true"), "ConfigMap", "dra-driver-numa-dashboards")
	if diff := cmp.Diff(want, found.Data); diff != "" {
		t.Errorf("dashboards (-files +chart):\n%s", diff)
	}
	if found.Labels["grafana_dashboard"] != "1" || found.Namespace != "dra-numa" {
		t.Errorf("labels %q in namespace %s", found.Labels, found.Namespace)
	}
	found = named[corev1.ConfigMap](t, mustRender(t, "metrics.dashboards.enabled=true", "metrics.dashboards.labels.grafana_dashboard=numa",
		"metrics.dashboards.annotations.grafana_folder=NUMA", "metrics.dashboards.namespace=grafana"), "ConfigMap", "dra-driver-numa-dashboards")
	if found.Labels["grafana_dashboard"] != "numa" || found.Annotations["grafana_folder"] != "NUMA" || found.Namespace != "grafana" {
		t.Errorf("labels %q and annotations %q in namespace %s", found.Labels, found.Annotations, found.Namespace)
	}
}
