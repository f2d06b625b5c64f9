package chart

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// platformFiles returns the values files of platforms.
func platformFiles(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(chartFolder + "/platforms/*.yaml")
	if err != nil || len(found) < 8 {
		t.Fatalf("files %q, %v", found, err)
	}
	return found
}

// A values file that names no value any more, or a wrong one, is refused by the schema.
func TestValuesOfPlatformsAreValid(t *testing.T) {
	program, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range platformFiles(t) {
		args := []string{"--values", file, "--set", strings.Join(everything, ",")}
		rendered, stderr, err := template(t, args...)
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, stderr)
			continue
		}
		for _, document := range documents(rendered) {
			decode[metav1.PartialObjectMetadata](t, document)
		}
		if output, err := exec.CommandContext(t.Context(), program, append([]string{"lint", "--strict", chartFolder}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("lint %s: %v\n%s", file, err, output)
		}
	}
}

// docs/platforms.md has a row for each file, and no other one.
func TestPlatformsAreDocumented(t *testing.T) {
	page := files.Read(t, "../../docs/platforms.md")
	var linked []string
	for line := range strings.Lines(page) {
		if _, rest, found := strings.Cut(line, "](../deployments/helm/dra-driver-numa/platforms/"); found && strings.HasPrefix(line, "|") {
			name, _, _ := strings.Cut(rest, ")")
			linked = append(linked, name)
		}
	}
	var want []string
	for _, file := range platformFiles(t) {
		want = append(want, filepath.Base(file))
	}
	slices.Sort(linked)
	if diff := cmp.Diff(want, linked); diff != "" {
		t.Errorf("rows of the table (-files +rows):\n%s", diff)
	}
}

// hooksOf returns the hooks of Helm during which an object exists; none for one of the release.
func hooksOf(object metav1.ObjectMeta) []string {
	if hooks := object.Annotations["helm.sh/hook"]; hooks != "" {
		return strings.Split(hooks, ",")
	}
	return nil
}

// lasts reports whether an object is there while one with these hooks needs it: objects of the
// release are gone when its post-delete hooks run.
func lasts(object metav1.ObjectMeta, hooks []string) bool {
	if own := hooksOf(object); own != nil {
		return len(hooks) > 0 && !slices.ContainsFunc(hooks, func(hook string) bool { return !slices.Contains(own, hook) })
	}
	return !slices.Contains(hooks, "post-delete")
}

// metas returns the metadata of objects by kind and name.
func metas(t *testing.T, rendered string) map[string]metav1.ObjectMeta {
	t.Helper()
	found := map[string]metav1.ObjectMeta{}
	for _, document := range documents(rendered) {
		object := decode[metav1.PartialObjectMetadata](t, document)
		found[object.Kind+" "+object.Name] = object.ObjectMeta
	}
	return found
}

// With rbac.scc, each pod may use the SecurityContextConstraints that it needs, and no pod
// without host paths may use more.
func TestEachPodHasOneSecurityContextConstraint(t *testing.T) {
	for _, set := range [][]string{everything, append(slices.Clone(everything), overrides...), {"rbac.scc=true", "uninstall.enabled=false"}} {
		rendered := mustRender(t, set...)
		var bindings []rbacv1.RoleBinding
		for _, document := range documents(rendered) {
			if binding := decode[rbacv1.RoleBinding](t, document); binding.Kind == "RoleBinding" && strings.HasPrefix(binding.RoleRef.Name, "system:openshift:scc:") {
				bindings = append(bindings, binding)
			}
		}
		objects, subjects := metas(t, rendered), 0
		for name, pod := range pods(t, set...) {
			want := "nonroot-v2"
			if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil }) {
				want = "privileged"
			}
			var got []string
			for _, binding := range bindings {
				for _, subject := range binding.Subjects {
					if subject.Name == pod.Spec.ServiceAccountName && subject.Namespace == objects[name].Namespace && lasts(binding.ObjectMeta, hooksOf(objects[name])) {
						got = append(got, strings.TrimPrefix(binding.RoleRef.Name, "system:openshift:scc:"))
					}
				}
			}
			subjects++
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%q: %s with account %s may use %q, want %s", set, name, pod.Spec.ServiceAccountName, got, want)
			}
		}
		for _, binding := range bindings {
			subjects -= len(binding.Subjects)
		}
		if subjects != 0 {
			t.Errorf("%q: %d subjects too few", set, subjects)
		}
	}
	for _, set := range []string{"", "rbac.scc=true,rbac.create=false"} {
		if rendered := mustRender(t, set); strings.Contains(rendered, "openshift") {
			t.Errorf("%q: there are bindings for OpenShift", set)
		}
	}
}

// With resourceQuota.create, each pod with a priority class of Kubernetes has a quota, also
// when Helm has deleted the release.
func TestPodsWithCriticalPriorityHaveAQuota(t *testing.T) {
	const set = "resourceQuota.create=true,webhook.enabled=true,hooks.priorityClassName=system-cluster-critical"
	rendered := mustRender(t, set)
	var quotas []corev1.ResourceQuota
	for _, document := range documents(rendered) {
		if quota := decode[corev1.ResourceQuota](t, document); quota.Kind == "ResourceQuota" {
			quotas = append(quotas, quota)
		}
	}
	objects := metas(t, rendered)
	for name, pod := range pods(t, set) {
		found := slices.ContainsFunc(quotas, func(quota corev1.ResourceQuota) bool {
			scope := quota.Spec.ScopeSelector.MatchExpressions[0]
			return quota.Namespace == objects[name].Namespace && lasts(quota.ObjectMeta, hooksOf(objects[name])) && scope.ScopeName == corev1.ResourceQuotaScopePriorityClass &&
				slices.Contains(scope.Values, pod.Spec.PriorityClassName) && quota.Spec.Hard.Pods().Value() >= 1_000_000
		})
		if !found {
			t.Errorf("%s with the priority class %s has no quota", name, pod.Spec.PriorityClassName)
		}
	}
	if rendered := mustRender(t); strings.Contains(rendered, "ResourceQuota\n") {
		t.Error("there is a quota by default")
	}
	if rendered := mustRender(t, "resourceQuota.create=true", "uninstall.enabled=false"); strings.Count(rendered, "kind: ResourceQuota\n") != 1 {
		t.Error("without uninstall.enabled, there is not one quota")
	}
}

// The values of TLS reach both servers, and are left out where the programs decide.
func TestTLSIsThatOfTheValues(t *testing.T) {
	const suites = `tls.cipherSuites={TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384}`
	const joined = "cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
	for _, row := range []struct{ set, want []string }{
		{[]string{"webhook.enabled=true", "metrics.tls.secret=a"}, nil},
		{[]string{"webhook.enabled=true", "tls.minVersion=VersionTLS12"}, []string{"--tls-min-version=VersionTLS12"}},
		{[]string{"metrics.tls.secret=a", suites}, []string{"--metrics-tls-" + joined}},
		{
			[]string{"webhook.enabled=true", "metrics.tls.secret=a", "tls.minVersion=VersionTLS13", suites},
			[]string{"--metrics-tls-" + joined, "--metrics-tls-min-version=VersionTLS13", "--tls-" + joined, "--tls-min-version=VersionTLS13"},
		},
	} {
		var got []string
		for _, pod := range pods(t, row.set...) {
			for _, container := range pod.Spec.Containers {
				for _, arg := range container.Args {
					if strings.Contains(arg, "tls-min-version") || strings.Contains(arg, "tls-cipher-suites") {
						got = append(got, arg)
					}
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q", row.set, got, row.want)
		}
	}
}

// What the files of platforms are for.
func TestValuesOfPlatformsReachTheObjects(t *testing.T) {
	for file, want := range map[string][]string{
		"kubeadm.yaml":      {"--kubelet-config=/host/kubelet-config.yaml", "path: /var/lib/kubelet/config.yaml\n"},
		"gke.yaml":          {"kind: ResourceQuota\n"},
		"bottlerocket.yaml": {"type: super_t\n"},
		"openshift.yaml":    {"type: spc_t\n", "name: system:openshift:scc:privileged\n", "path: /etc/kubernetes/kubelet.conf\n"},
		"talos.yaml":        {"--cdi-dir=/var/cdi/dynamic\n", "path: /var/cdi/dynamic\n", "--static-cdi-dir=/var/cdi/static\n"},
	} {
		rendered, stderr, err := template(t, "--values", chartFolder+"/platforms/"+file, "--set", "config.devices.presets={gpu}")
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, stderr)
		}
		for _, text := range want {
			if !strings.Contains(rendered, text) {
				t.Errorf("%s: no %q in what is rendered", file, text)
			}
		}
	}
}
