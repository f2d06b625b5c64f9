package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// A bundle may come from another person, so its size in memory is limited.
const (
	maxFiles = 100_000
	maxBytes = 2 << 30 // of all files together, when unpacked
)

// Read reads the archive into memory, and writes nothing. It ignores files that this
// version does not know.
func Read(r io.Reader) (Bundle, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return Bundle{}, fmt.Errorf("unpack: %w", err)
	}
	b := &reader{files: make(map[string][]byte)}
	if err := b.unpack(tar.NewReader(compressed), maxFiles, maxBytes); err != nil {
		return Bundle{}, fmt.Errorf("unpack: %w", err)
	}
	return b.bundle()
}

// reader is an archive in memory.
type reader struct {
	files map[string][]byte
	names []string // in the order of the archive
}

// unpack reads the archive: at most the given number of files, and at most room bytes
// in total.
func (b *reader) unpack(archive *tar.Reader, files int, room int64) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch _, twice := b.files[header.Name]; {
		case header.Typeflag != tar.TypeReg || !fs.ValidPath(header.Name):
			return fmt.Errorf("%q: want a regular file with a relative path", header.Name)
		case twice:
			return fmt.Errorf("%q occurs twice", header.Name)
		case len(b.names) == files:
			return fmt.Errorf("the bundle has more than %d files", files)
		}
		// The size in the header is not trusted.
		text, err := io.ReadAll(io.LimitReader(archive, room+1))
		if err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
		if room -= int64(len(text)); room < 0 {
			return errors.New("the unpacked bundle is too large")
		}
		b.files[header.Name] = text
		b.names = append(b.names, header.Name)
	}
}

func (b *reader) bundle() (Bundle, error) {
	var contents index
	if err := b.decode(indexFile, &contents); err != nil {
		return Bundle{}, err
	}
	if contents.Version != version {
		return Bundle{}, fmt.Errorf("the bundle has version %d, want %d: use the kubectl-numa that wrote the bundle", contents.Version, version)
	}
	facts := &diagnosis.Facts{
		Time: contents.Gathered, Version: contents.Kubernetes, Gates: contents.Gates, Unread: contents.Unread, Missing: contents.Missing, Policies: contents.Policies,
		Objects: &snapshot.Snapshot{RuleVersion: contents.TaintRules},
	}
	result := Bundle{Gathered: contents.Gathered, Facts: facts}
	for path, value := range map[string]any{installationFile: &facts.Installation, kubeletsFile: &facts.Kubelets, eventsFile: &result.Events} {
		if err := b.decode(path, value); err != nil {
			return Bundle{}, err
		}
	}
	if _, there := b.files[budgetsFile]; !there {
		facts.Missing = append(facts.Missing, diagnosis.Unread{Component: "kube-apiserver", Setting: BudgetsSetting, Why: "an older kubectl-numa wrote the bundle"})
	}
	if _, there := b.files[versionsFile]; there {
		var versions diagnosis.Versions
		if err := b.decode(versionsFile, &versions); err != nil {
			return Bundle{}, err
		}
		result.Client = versions.Client
	}
	// Older bundles have no namespace, and objects of other namespaces with the label. If
	// the namespace cannot be found, no pod is the driver's.
	_ = facts.Installation.Locate(facts.Installation.Namespace)
	for _, name := range b.names {
		if strings.HasPrefix(name, objectsDir) {
			if err := facts.Objects.Read(name, bytes.NewReader(b.files[name])); err != nil {
				return Bundle{}, err
			}
		}
		if err := addState(facts, name, b.files[name]); err != nil {
			return Bundle{}, fmt.Errorf("%s: %w", name, err)
		}
		result.Machines = withFile(result.Machines, name, machinesDir, machineEnding, b.files[name])
		result.Configs = withFile(result.Configs, name, configsDir, configEnding, b.files[name])
		if log, is := parseLog(name); is {
			log.Text = b.files[name]
			result.Logs = append(result.Logs, log)
		}
	}
	return result, nil
}

// nodeOf returns the node that a file is about; "" if the file is not in the folder, or
// has another ending.
func nodeOf(name, folder, ending string) string {
	file, within := strings.CutPrefix(name, folder)
	node, ends := strings.CutSuffix(file, ending)
	if !within || !ends {
		return ""
	}
	return node
}

// withFile adds a file of the folder to those of the nodes.
func withFile(files map[string][]byte, name, folder, ending string, text []byte) map[string][]byte {
	node := nodeOf(name, folder, ending)
	if node == "" {
		return files
	}
	if files == nil {
		files = make(map[string][]byte)
	}
	files[node] = text
	return files
}

// addState adds the state of a node, if the file contains one.
func addState(facts *diagnosis.Facts, name string, text []byte) error {
	node := nodeOf(name, statesDir, stateEnding)
	if node == "" {
		return nil
	}
	state, err := nodestate.Decode(text)
	if facts.States == nil {
		facts.States = make(map[string]*nodestate.State)
	}
	facts.States[node] = state
	return err
}

func (b *reader) decode(path string, value any) error {
	text, there := b.files[path]
	if !there {
		return fmt.Errorf("the bundle has no %s", path)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// parseLog is the inverse of Log.path.
func parseLog(path string) (log Log, isLog bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[0] != "logs" {
		return Log{}, false
	}
	name, isLog := strings.CutSuffix(parts[3], ".log")
	name, previous := strings.CutSuffix(name, ".previous")
	return Log{Namespace: parts[1], Pod: parts[2], Container: name, Previous: previous}, isLog
}
