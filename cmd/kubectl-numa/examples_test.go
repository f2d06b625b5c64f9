package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// exampleObjects are the objects that the examples name.
const exampleObjects = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: four-gpus, namespace: team-a, labels: {tier: batch}}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.dra.numa, allocationMode: ExactCount, count: 4}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: trainer, namespace: team-a}
spec: {priority: 10, resourceClaims: [{name: gpus, resourceClaimName: four-gpus}], containers: [{name: main, resources: {claims: [{name: gpus}]}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team-a, uid: web}
spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: others}
spec: {driver: gpu.example.com, nodeName: worker-1, pool: {name: worker-1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: cards}
spec: {driver: dra.numa, nodeName: worker-1, pool: {name: worker-1, generation: 0, resourceSliceCount: 1}, devices: [{name: nic-0000-3b-00-0}]}
`

// exampleFolder has the files that the examples name.
func exampleFolder(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	cluster := clusterFolder(t)
	testfiles.Write(t, filepath.Join(cluster, "node.yaml"), "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1, labels: {pool: batch}}\nstatus: {allocatable: {cpu: 16, memory: 4Gi, pods: 110}}\n")
	testfiles.Write(t, filepath.Join(cluster, "class-gpu.yaml"), testfiles.Read(t, "../../deviceclasses/gpu.dra.numa.yaml"))
	testfiles.Write(t, filepath.Join(cluster, "more.yaml"), exampleObjects)
	manifest := strings.NewReplacer("NAME", "new", "AMOUNTS", "cpu: 2").Replace(podManifest)
	for name, text := range map[string]string{
		"pods.yaml": manifest, "pod.yaml": manifest, "manifests/pod.yaml": manifest,
		"nodes.yaml":    testfiles.Read(t, filepath.Join(cluster, "node.yaml")),
		"slices.yaml":   testfiles.Read(t, filepath.Join(cluster, "slices.yml")),
		"classes.yaml":  testfiles.Read(t, filepath.Join(cluster, "class.yaml")),
		"old/node.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\n",
		"node.yaml":     "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: 0-1\n",
	} {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	for link, target := range map[string]string{"cluster": cluster, "machine": sample.Folder(t, "epyc-2s-nps4")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// exampleCluster answers as the cluster of the examples.
func exampleCluster(t *testing.T, dir string) answers {
	t.Helper()
	a := installedCluster(t)
	daemon := snapshotOf(t, a).Pods
	for path, answer := range objectAnswers(t, filepath.Join(dir, "cluster")) {
		a[path] = answer
	}
	objects, err := files{filepath.Join(dir, "cluster")}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a["/api/v1/pods"] = listOf("PodList", "v1", append(daemon, objects.Pods...))
	a["/api/v1/namespaces/team-a/events"] = listOf("EventList", "v1", objects.Events)
	a["/apis/apps/v1/namespaces/team-a/deployments"] = listOf("DeploymentList", "apps/v1", objectsOf(objects.Workloads))
	a["/apis/apps/v1/namespaces/team-a/replicasets"] = listOf("ReplicaSetList", "apps/v1", []any{})
	return a
}

// Users copy the examples of --help. Each does what it says: it finds its objects, and
// has no wrong flag. Of the commands that do not end, it tries only the flags.
func TestExamplesWork(t *testing.T) {
	dir := exampleFolder(t)
	t.Setenv("KUBECONFIG", exampleCluster(t, dir).serve(t))
	t.Chdir(dir)
	var examples []string
	eachCommand(func(command *cobra.Command) {
		if command.Example == "" && command.Parent().Name() != "completion" {
			t.Errorf("%s has no example", pathOf(command))
		}
		for line := range strings.Lines(command.Example) {
			if example, is := strings.CutPrefix(strings.TrimSpace(line), "kubectl-numa "); is && !slices.Contains(examples, example) {
				examples = append(examples, example)
			}
		}
	})
	// gather writes the bundle that others read.
	slices.SortStableFunc(examples, func(a, b string) int {
		return strings.Index(b, "gather") - strings.Index(a, "gather")
	})
	for _, example := range examples {
		if strings.HasPrefix(example, "ui") || strings.HasSuffix(example, " --watch") {
			args := strings.Fields(example)
			command, _, err := (cli{name: program}).rootCommand().Find(args[:1])
			if err == nil {
				err = command.ParseFlags(args[1:])
			}
			if err != nil {
				t.Errorf("%s: %v", example, err)
			}
			continue
		}
		if exitCode, _, stderr := call(words(strings.ReplaceAll(example, "/tmp/", dir+"/"))...); exitCode == exitUsage {
			t.Errorf("%s: exit code 2, %s", example, stderr)
		}
	}
	if len(examples) < 40 {
		t.Errorf("there are only %d examples", len(examples))
	}
}

// words splits a line as a shell does, up to the first redirection or pipe. Quotes are '.
func words(line string) (list []string) {
	word, quoted := "", false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case quoted || r != ' ':
			word += string(r)
		case strings.HasPrefix(word, ">") || word == "|":
			return list
		case word != "":
			list, word = append(list, word), ""
		}
	}
	return list
}

// In documents, commands have only subcommands and flags that exist.
func TestDocumentsHaveOnlyFlagsThatExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md")
	line := regexp.MustCompile("kubectl[ -]numa ([a-z][^`|>\n]*)")
	seen := 0
	for _, page := range pages {
		text := strings.ReplaceAll(testfiles.Read(t, page), "\\\n", " ")
		for _, found := range line.FindAllStringSubmatch(text, -1) {
			args := strings.Fields(found[1])
			command, rest, err := (cli{name: program}).rootCommand().Find(args)
			if err != nil || !command.HasParent() {
				continue // prose, such as: kubectl numa has no such command
			}
			for _, arg := range rest {
				name, isLong := strings.CutPrefix(strings.TrimRight(arg, ".,;:)"), "--")
				if !isLong {
					continue
				}
				seen++
				name, _, _ = strings.Cut(name, "=")
				if command.Flags().Lookup(name) == nil && !slices.Contains([]string{"help", ""}, name) {
					t.Errorf("%s: %s: there is no flag --%s", filepath.Base(page), found[0], name)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("found only %d flags", seen)
	}
}
