// Package bundle is the file in which the facts of a cluster go to somebody who has
// no access to it: a compressed tar archive, made so that two of the same facts are
// the same bytes. It has no secrets: of every object only what a diagnosis depends
// on is in it. It reads no cluster and writes no file but to the writer that it is given.
package bundle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// version is that of the layout.
const version = 1

// Bundle is what is gathered.
type Bundle struct {
	Gathered time.Time // to the second
	Facts    *diagnosis.Facts
	// Events are those about nodes, and those of this driver.
	Events []*corev1.Event
	Logs   []Log
}

// Log is the end of what a container of the driver said.
type Log struct {
	Namespace, Pod, Container string

	Previous bool // of the container that it replaced
	Text     []byte
}

// path is the log's in the archive. No name has a slash or begins with a dot.
func (l Log) path() string {
	name := l.Container
	if l.Previous {
		name += ".previous"
	}
	return "logs/" + l.Namespace + "/" + l.Pod + "/" + name + ".log"
}

// index is the archive's first file.
type index struct {
	Version    int                `json:"version"`
	Gathered   time.Time          `json:"gathered"`
	Kubernetes string             `json:"kubernetes"` // the API server's version
	Gates      map[string]bool    `json:"featureGates"`
	Files      []entry            `json:"files"`
	Unread     []diagnosis.Unread `json:"unread"`  // what should be here, and why it is not
	Missing    []diagnosis.Unread `json:"missing"` // the same of what no check depends on
}

// entry is a file of the archive.
type entry struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

// The files with more than lines of a container.
const (
	indexFile        = "index.json"
	objectsDir       = "objects/"
	installationFile = "installation.json"
	kubeletsFile     = "kubelets.json"
	statesDir        = "nodes/"
	eventsFile       = "events.json"
)

func sortLogs(logs []Log) []Log {
	return slices.SortedFunc(slices.Values(logs), func(a, b Log) int { return cmp.Compare(a.path(), b.path()) })
}

func sortFiles(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.path, b.path) })
}
