package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// file is a file of the archive.
type file struct {
	path string
	text []byte
}

// Write writes the archive.
func Write(w io.Writer, b Bundle) error {
	files, err := b.files()
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.path, Mode: 0o644, Size: int64(len(f.text)), ModTime: b.Gathered.UTC(), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// files returns the files of the archive, the index first.
func (b Bundle) files() ([]file, error) {
	named, facts := addresses{}, *b.Facts
	list, err := objectFiles(&facts, named)
	if err != nil {
		return nil, err
	}
	facts.Unread, facts.Missing = named.inReasons(facts.Unread), named.inReasons(facts.Missing)
	for path, value := range map[string]any{
		installationFile: redactedInstallation(b.Facts.Installation),
		kubeletsFile:     b.Facts.Kubelets,
		eventsFile:       redactedEvents(b.Events, named),
		versionsFile:     diagnosis.VersionsOf(&facts, b.Client),
	} {
		text, err := indented(value)
		if err != nil {
			return nil, err
		}
		list = append(list, file{path, text})
	}
	for node, state := range b.Facts.States {
		text, err := indented(state)
		if err != nil {
			return nil, err
		}
		list = append(list, file{statesDir + node + stateEnding, text})
	}
	for node, archive := range b.Machines {
		list = append(list, file{machinesDir + node + machineEnding, archive})
	}
	for node, config := range b.Configs {
		list = append(list, file{configsDir + node + configEnding, config})
	}
	for _, log := range sortLogs(b.Logs) {
		list = append(list, file{log.path(), redactedLog(log.Text)})
	}
	list = sortFiles(list)
	contents := index{
		Version: version, Gathered: b.Gathered.UTC(), Kubernetes: b.Facts.Version, Gates: b.Facts.Gates, Unread: facts.Unread, Missing: facts.Missing,
		TaintRules: b.Facts.Objects.RuleVersion, Policies: b.Facts.Policies,
	}
	for _, f := range list {
		contents.Files = append(contents.Files, entry{f.path, len(f.text)})
	}
	text, err := indented(contents)
	return append([]file{{indexFile, text}}, list...), err
}

func indented(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}

// objectFiles returns lists in the format of kubectl get. Once unpacked, the folder can
// be used with --filename.
func objectFiles(facts *diagnosis.Facts, named addresses) (files []file, err error) {
	s := facts.Objects
	resources := resourceapi.SchemeGroupVersion.String()
	add := func(path, apiVersion, kind string, items []any) {
		text, failed := listText(apiVersion, kind, items)
		if failed != nil {
			err = failed
		}
		files = append(files, file{objectsDir + path + ".json", text})
	}
	add("nodes", "v1", "NodeList", items(s.Nodes, redactedNode))
	add("pods", "v1", "PodList", items(s.Pods, func(pod *corev1.Pod) *corev1.Pod {
		return redactedPod(pod, facts.Installation.Program(pod) == diagnosis.DaemonName)
	}))
	add("deviceclasses", resources, "DeviceClassList", items(s.Classes, redactedClass))
	add("resourceslices", resources, "ResourceSliceList", items(s.Slices, named.redactedSlice))
	add("resourceclaims", resources, "ResourceClaimList", items(s.Claims, redactedClaim))
	add("resourceclaimtemplates", resources, "ResourceClaimTemplateList", items(s.Templates, redactedTemplate))
	add("poddisruptionbudgets", policyv1.SchemeGroupVersion.String(), "PodDisruptionBudgetList", items(s.Budgets, redactedBudget))
	add("devicetaintrules", resources, "DeviceTaintRuleList", items(s.TaintRules, redactedRule))
	return files, err
}

func items[T any](objects []T, redacted func(T) T) (list []any) {
	for _, object := range objects {
		list = append(list, redacted(object))
	}
	return list
}

// listText writes one object per line.
func listText(apiVersion, kind string, items []any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","items":[`)
	for i, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(text)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}
