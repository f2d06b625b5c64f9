// Package bundle writes and reads support bundles. A bundle is a file with the facts of
// a cluster, for a person who has no access to that cluster. It is a compressed tar
// archive, and the same facts always give the same bytes. It has no secrets: it
// contains only the fields of each object that a diagnosis needs. The package does not
// read a cluster, and writes only to the writer that it is given.
package bundle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// version is the version of the layout.
const version = 1

// Bundle is the content of a bundle.
type Bundle struct {
	Gathered time.Time // rounded to seconds
	// Client is the version of the program that gathered the bundle.
	Client string
	Facts  *diagnosis.Facts
	// Events are the events about nodes, and the events of this driver.
	Events []*corev1.Event
	Logs   []Log
	// Machines are the files of the machines, by node: archives of package capture.
	Machines map[string][]byte
	// Configs are the effective configurations of the daemons in YAML, by node.
	Configs map[string][]byte
}

// Log is the end of the log of a container of the driver.
type Log struct {
	Namespace, Pod, Container string

	Previous bool // the log is of the container before the last restart
	Text     []byte
}

// path returns the path of the log in the archive. Kubernetes names have no slash and
// do not begin with a dot.
func (l Log) path() string {
	name := l.Container
	if l.Previous {
		name += ".previous"
	}
	return "logs/" + l.Namespace + "/" + l.Pod + "/" + name + ".log"
}

// index is the first file of the archive.
type index struct {
	Version    int                `json:"version"`
	Gathered   time.Time          `json:"gathered"`
	Kubernetes string             `json:"kubernetes"` // version of the API server
	Gates      map[string]bool    `json:"featureGates"`
	TaintRules string             `json:"deviceTaintRules,omitempty"` // snapshot.Snapshot.RuleVersion
	Policies   []string           `json:"resourcePolicies,omitempty"` // diagnosis.Facts.Policies
	Files      []entry            `json:"files"`
	Unread     []diagnosis.Unread `json:"unread"`  // what could not be read, and why
	Missing    []diagnosis.Unread `json:"missing"` // the same for what no check needs
}

// entry is a file of the archive.
type entry struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

// Names in diagnosis.Facts.Missing.
const (
	// BudgetsSetting is the name of the PodDisruptionBudgets.
	BudgetsSetting = "PodDisruptionBudgets"
	// EventsSetting is the name of Bundle.Events.
	EventsSetting = "events"
)

// Endings of the files of nodes.
const (
	stateEnding   = ".json"
	machineEnding = ".tar.gz"
	configEnding  = ".yaml"
)

// Files and folders of the archive, except logs.
const (
	indexFile        = "index.json"
	objectsDir       = "objects/"
	budgetsFile      = objectsDir + "poddisruptionbudgets.json"
	installationFile = "installation.json"
	kubeletsFile     = "kubelets.json"
	versionsFile     = "versions.json"
	statesDir        = "nodes/"
	machinesDir      = "machines/"
	configsDir       = "configs/"
	eventsFile       = "events.json"
)

func sortLogs(logs []Log) []Log {
	return slices.SortedFunc(slices.Values(logs), func(a, b Log) int { return cmp.Compare(a.path(), b.path()) })
}

func sortFiles(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.path, b.path) })
}
