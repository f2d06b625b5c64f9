// Package chart tests the Helm chart by rendering it with the helm of the
// tools module. It talks to no cluster.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// helm returns the program that HELM names, else builds that of the tools
// module: each call through go tool would cost more than the call.
var helm = sync.OnceValues(func() (string, error) {
	if program := os.Getenv("HELM"); program != "" {
		return program, nil
	}
	output, err := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "-n", "helm").Output()
	return strings.TrimSpace(string(output)), err
})

// render returns what helm template prints on standard output and on standard
// error for the chart with the given --set arguments.
func render(t *testing.T, set ...string) (stdout, stderr string, err error) {
	t.Helper()
	var args []string
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return template(t, args...)
}

// template is render with arguments of helm template.
func template(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return templateOf(t, "dra-driver-numa", args...)
}

// templateOf is template for a release of another name.
func templateOf(t *testing.T, release string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return templateAt(t, release, "../../deployments/helm/dra-driver-numa", args...)
}

// templateAt is templateOf for the chart in a folder.
func templateAt(t *testing.T, release, chart string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	program, err := helm()
	if err != nil {
		t.Fatalf("build helm: %v", err)
	}
	args = append([]string{"template", release, chart, "--namespace", "dra-numa"}, args...)
	var out, errors bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdout, command.Stderr = &out, &errors
	err = command.Run()
	return out.String(), errors.String(), err
}

func mustRender(t *testing.T, set ...string) string {
	t.Helper()
	stdout, stderr, err := render(t, set...)
	if err != nil {
		t.Fatalf("render the chart with %q: %v\n%s", set, err, stderr)
	}
	return stdout
}

// object returns the only object of its kind in a rendered chart, not counting those of
// hooks. It is decoded strictly: a misspelt field is an error here and not a silent default
// in a cluster.
func object[T any](t *testing.T, rendered, kind string) (value T) {
	t.Helper()
	found := 0
	for _, document := range documents(rendered) {
		if meta := decode[metav1.PartialObjectMetadata](t, document); meta.Kind != kind || meta.Annotations["helm.sh/hook"] != "" {
			continue
		}
		found++
		if err := yaml.UnmarshalStrict([]byte(document), &value); err != nil {
			t.Fatalf("decode %s: %v", kind, err)
		}
	}
	if found != 1 {
		t.Fatalf("the chart has %d objects of kind %s, want 1", found, kind)
	}
	return value
}

func decode[T any](t *testing.T, document string) (value T) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), &value); err != nil {
		t.Fatalf("%v in:\n%s", err, document)
	}
	return value
}

// documents splits rendered YAML at its separators and drops the comments that
// name the template of each.
func documents(rendered string) (documents []string) {
	for document := range strings.SplitSeq("\n"+rendered, "\n---\n") {
		for strings.HasPrefix(document, "# Source: ") {
			_, document, _ = strings.Cut(document, "\n")
		}
		if strings.TrimSpace(document) != "" {
			documents = append(documents, document)
		}
	}
	return documents
}

func TestRenderedChartIsTheGoldenOne(t *testing.T) {
	for name, args := range map[string][]string{
		"default.yaml":     nil,
		"every-value.yaml": {"--values", "testdata/every.values.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, stderr, err := template(t, args...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			files.Golden(t, filepath.Join("testdata", name), rendered)
		})
	}
}

func TestNonsenseIsOneClearLine(t *testing.T) {
	for set, want := range map[string]string{
		"reservedCPUs=all":                               `- at '/reservedCPUs': 'all' does not match pattern`,
		"reservedCPUs=-1":                                `- at '/reservedCPUs': minimum: got -1, want 0`,
		`reservedCPUs=3\,\,4`:                            `- at '/reservedCPUs': '3,,4' does not match pattern`,
		"reservedCPUs=0-3:1/2":                           `- at '/reservedCPUs': '0-3:1/2' does not match pattern`,
		"reservedMemory=1GB":                             `- at '/reservedMemory': '1GB' does not match pattern`,
		"kubelet.root=var/lib":                           `- at '/kubelet/root': 'var/lib' does not match pattern`,
		"kubelet.root=/a/":                               `- at '/kubelet/root': '/a/' does not match pattern`,
		"kubelet.configFile=x":                           `- at '/kubelet/configFile': 'x' does not match pattern`,
		"cache.mountOptions={cdpl2}":                     `- at '/cache/mountOptions/0': value must be one of`,
		"kubelet.rootDir=/x":                             `- at '/kubelet': additional properties 'rootDir' not allowed`,
		"image.repository=Bad Ref":                       `- at '/image/repository': 'Bad Ref' does not match pattern`,
		"image.tag=a:b":                                  `- at '/image/tag': 'a:b' does not match pattern`,
		"image.pullPolicy=always":                        `- at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'`,
		"config.devices.bindDrivers=true":                `- at '/config/devices/bindDrivers': value must be one of 'none', 'class', 'claim'`,
		"exclusivity=shared":                             `- at '/exclusivity': value must be one of 'auto', 'kernel', 'cooperative', 'none'`,
		"nri.socketDir=run/nri":                          `- at '/nri/socketDir': 'run/nri' does not match pattern`,
		"maxUnavailable=1":                               `- at '': additional properties 'maxUnavailable' not allowed`,
		"updateStrategy.maxUnavailable=-1":               `- at '/updateStrategy/maxUnavailable': minimum: got -1, want 0`,
		"updateStrategy.maxUnavailable=101%":             `- at '/updateStrategy/maxUnavailable': '101%' does not match pattern`,
		"webhook.failurePolicy=fail":                     `- at '/webhook/failurePolicy': value must be one of 'Ignore', 'Fail'`,
		"webhook.replicas=0":                             `- at '/webhook/replicas': minimum: got 0, want 1`,
		"webhook.claimControllers[0]=":                   `- at '/webhook/claimControllers/0': minLength: got 0, want 1`,
		"webhook.certificate.secret=A":                   `- at '/webhook/certificate/secret': 'A' does not match pattern`,
		"webhook.certificate.caBundle=x":                 `- at '/webhook/certificate/caBundle': 'x' does not match pattern`,
		"webhook.networkPolicy=true":                     `- at '/webhook/networkPolicy': got boolean, want object`,
		"webhook.mirrorRequests=enforced":                `- at '/webhook/mirrorRequests': value must be one of false, true, 'enforce'`,
		"webhook.translate=true":                         `- at '/webhook/translate': got boolean, want object`,
		"webhook.translate.scope=node":                   `- at '/webhook/translate/scope': value must be one of 'container', 'pod'`,
		"webhook.translate.policy=static":                `- at '/webhook/translate/policy': value must be one of 'single-numa-node', 'restricted', 'best-effort', 'none'`,
		"webhook.translate.partOfCore=up":                `- at '/webhook/translate/partOfCore': value must be one of 'round', 'leave'`,
		"webhook.translate.threadsPerCore=0":             `- at '/webhook/translate/threadsPerCore': minimum: got 0, want 1`,
		"webhook.translate.twins.gpu=a":                  `- at '/webhook/translate/twins': additional properties 'gpu' not allowed`,
		`webhook.translate.twins.a\.b/gpu=A`:             `- at '/webhook/translate/twins/a.b~1gpu': 'A' does not match pattern`,
		"webhook.translate.onError=warn":                 `- at '/webhook/translate/onError': value must be one of 'refuse', 'leave'`,
		"webhook.mirror=true":                            `- at '/webhook': additional properties 'mirror' not allowed`,
		"ownSlicesOnly=yes":                              `- at '/ownSlicesOnly': got string, want boolean`,
		"viewer.enabled=on":                              `- at '/viewer/enabled': got string, want boolean`,
		"metrics.port=0":                                 `- at '/metrics/port': minimum: got 0, want 1`,
		"metrics.port=8089":                              `- at '/metrics/port': 'not' failed`,
		"metrics.tls.secret=Tls":                         `- at '/metrics/tls/secret': 'Tls' does not match pattern`,
		"metrics.podMonitor.interval=30":                 `- at '/metrics/podMonitor/interval': got number, want string`,
		"metrics.podMonitor.interval=0s":                 `- at '/metrics/podMonitor/interval': '0s' does not match pattern`,
		"metrics.prometheusRule.for=1d":                  `- at '/metrics/prometheusRule/for': '1d' does not match pattern`,
		"metrics.dashboards.namespace=a/b":               `- at '/metrics/dashboards/namespace': 'a/b' does not match pattern`,
		"image.digest=sha256:12":                         `- at '/image/digest': 'sha256:12' does not match pattern`,
		"imagePullSecrets={a}":                           `- at '/imagePullSecrets/0': got string, want object`,
		"imagePullSecrets[0].name=A":                     `- at '/imagePullSecrets/0/name': 'A' does not match pattern`,
		"commonLabels.a=b c":                             `- at '/commonLabels/a': 'b c' does not match pattern`,
		`podLabels.helm\.sh/chart=x`:                     `- at '/podLabels/helm.sh~1chart': false schema`,
		`commonAnnotations.helm\.sh/hook=test`:           `- at '/commonAnnotations/helm.sh~1hook': false schema`,
		"podAnnotations.a b=c":                           `- at '/podAnnotations': additional properties 'a b' not allowed`,
		"affinity.nodeafinity.x=y":                       `- at '/affinity': additional properties 'nodeafinity' not allowed`,
		"priorityClassName=High":                         `- at '/priorityClassName': 'High' does not match pattern`,
		"resources.limits.memory=1 Gi":                   `- at '/resources/limits/memory': '1 Gi' does not match pattern`,
		"resources.limits.cpu=-1":                        `- at '/resources/limits/cpu': minimum: got -1, want 0`,
		"webhook.tolerations[0].effect=No":               `- at '/webhook/tolerations/0/effect': value must be one of`,
		"webhook.topologySpreadConstraints[0].maxSkew=1": `- at '/webhook/topologySpreadConstraints/0': missing properties 'topologyKey', 'whenUnsatisfiable'`,
		"webhook.podDisruptionBudget.maxUnavailable=0":   `- at '/webhook/podDisruptionBudget/maxUnavailable': 'not' failed`,
		"uninstall.timeout=10":                           `- at '/uninstall/timeout': got number, want string`,
		"uninstall.nodeTimeout=0s":                       `- at '/uninstall/nodeTimeout': '0s' does not match pattern`,
		"flowControl.nominalConcurrencyShares=0":         `- at '/flowControl/nominalConcurrencyShares': minimum: got 0, want 1`,
		"flowControl.matchingPrecedence=10001":           `- at '/flowControl/matchingPrecedence': maximum: got 10,001, want 10,000`,
		"pprof=true":                                     `- at '/pprof': got boolean, want object`,
		"nvml.image=a b":                                 `- at '/nvml/image': 'a b' does not match pattern`,
		"verbosity=11":                                   `- at '/verbosity': maximum: got 11, want 10`,
		"loggingFormat=xml":                              `- at '/loggingFormat': value must be one of 'text', 'json'`,
		"nodeSelector=x":                                 `- at '/nodeSelector': got string, want object`,
		"nameOverride=a.b":                               `- at '/nameOverride': 'a.b' does not match pattern`,
		"fullnameOverride=A":                             `- at '/fullnameOverride': 'A' does not match pattern`,
		"namespaceOverride=a/b":                          `- at '/namespaceOverride': 'a/b' does not match pattern`,
		"serviceAccount.name=A":                          `- at '/serviceAccount/name': 'A' does not match pattern`,
		"rbac.scc=openshift":                             `- at '/rbac/scc': got string, want boolean`,
		"resourceQuota.create=1":                         `- at '/resourceQuota/create': got number, want boolean`,
		"tls.minVersion=VersionTLS11":                    `- at '/tls/minVersion': value must be one of '', 'VersionTLS12', 'VersionTLS13'`,
		"tls.cipherSuites={ECDHE-RSA-AES128-GCM-SHA256}": `- at '/tls/cipherSuites/0': 'ECDHE-RSA-AES128-GCM-SHA256' does not match pattern`,
		"rbac.create=no":                                 `- at '/rbac/create': got string, want boolean`,
		"cdi.dynamicDir=":                                `- at '/cdi/dynamicDir': '' does not match pattern`,
		"hook.dir=x":                                     `- at '/hook/dir': 'x' does not match pattern`,
		"extraArgs={v=3}":                                `- at '/extraArgs/0': 'v=3' does not match pattern`,
		"extraEnv[0].value=x":                            `- at '/extraEnv/0': missing property 'name'`,
		"global.imageRegistry=A":                         `- at '/global/imageRegistry': 'A' does not match pattern`,
		`commonLabels.app\.kubernetes\.io/part-of=x`:     `- at '/commonLabels/app.kubernetes.io~1part-of': false schema`,
		"reservedCpus=0":                                 `- at '': additional properties 'reservedCpus' not allowed`,
	} {
		stdout, stderr, err := render(t, set)
		var lines []string
		for line := range strings.Lines(stderr) {
			if strings.HasPrefix(line, "- at ") {
				lines = append(lines, line)
			}
		}
		if err == nil || stdout != "" || len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
			t.Errorf("--set %s: error %v, want the one line %q in:\n%s", set, err, want, stderr)
		}
	}
}
