package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
)

// gatesTimeout is for the metrics of an API server, which are megabytes.
const gatesTimeout = 10 * time.Second

// source is what a command is about: the cluster that kubectl talks to, a bundle
// that gather wrote, objects in files, or one of the first two with those of the
// files in the place of its own.
type source struct {
	files       files
	fromCluster bool
	bundle      string // file
	kubeconfig  string
	context     string

	read *diagnosis.Facts // of the bundle, once it has been
}

// addTo gives a command the flags for what it is about.
func (s *source) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP((*[]string)(&s.files), "filename", "f", nil,
		"`file` or folder with objects of a cluster, - is standard input; may be repeated (default: the cluster that kubectl talks to)")
	flags.BoolVar(&s.fromCluster, "from-cluster", false, "the objects of the cluster and those of --filename; of two with one name that of the file counts")
	s.addDiagnosisTo(command)
	_ = command.MarkFlagFilename("filename", "yaml", "yml", "json") // for a shell's completion; the flags are there
}

// addDiagnosisTo gives a command that is about more than objects the flags for what
// has more: a cluster, or a bundle.
func (s *source) addDiagnosisTo(command *cobra.Command) {
	command.Flags().StringVar(&s.bundle, "from", "", "`bundle` that gather wrote, instead of a cluster")
	s.addClusterTo(command)
	_ = command.MarkFlagFilename("from", "tar.gz")
}

// addClusterTo gives a command that is about a cluster only the flags that say which.
func (s *source) addClusterTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` that says how to talk to the cluster (default: as kubectl does)")
	flags.StringVar(&s.context, "context", "", "`name` of the kubeconfig's context (default: its current one)")
	_ = command.MarkFlagFilename("kubeconfig")
}

// String says where objects are looked for, in the words of an error.
func (s *source) String() string {
	var places []string
	for place, asked := range map[string]bool{"the cluster": s.live(), "the bundle": s.bundle != "", "the files": len(s.files) > 0} {
		if asked {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return strings.Join(places, " and ")
}

// live says whether the cluster is asked.
func (s *source) live() bool { return s.fromCluster || len(s.files) == 0 && s.bundle == "" }

// Snapshot reads what there is.
func (s *source) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	// Files first: a wrong name is found before the cluster is asked for all it has.
	named, err := s.files.Snapshot(ctx)
	if err != nil || !s.live() && s.bundle == "" {
		return named, err
	}
	objects, err := s.underneath(ctx)
	if err != nil {
		return nil, err
	}
	objects.Overlay(named)
	return objects, nil
}

// underneath is what files are laid over.
func (s *source) underneath(ctx context.Context) (*snapshot.Snapshot, error) {
	if s.bundle != "" {
		facts, err := s.Facts(ctx)
		if err != nil {
			return nil, err
		}
		return facts.Objects, nil
	}
	_, client, err := s.connect()
	if err != nil {
		return nil, err
	}
	objects, err := live.Source{Client: client}.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return objects, nil
}

// Facts reads what there is to diagnose.
func (s *source) Facts(ctx context.Context) (*diagnosis.Facts, error) {
	if err := s.check(); err != nil || s.read != nil {
		return s.read, err
	}
	if s.bundle != "" {
		bundle, err := readBundle(s.bundle)
		s.read = bundle.Facts
		return s.read, err
	}
	_, client, err := s.connect()
	if err != nil {
		return nil, err
	}
	facts, err := collect.Facts(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return facts, nil
}

func (s *source) check() error {
	if s.bundle != "" && s.fromCluster {
		return errors.New("--from is instead of a cluster, and --from-cluster asks for one: set one of them")
	}
	if s.live() {
		return nil
	}
	for flag, value := range map[string]string{"--kubeconfig": s.kubeconfig, "--context": s.context} {
		if value != "" {
			return fmt.Errorf("%s is about a cluster, and none is asked: set --from-cluster to have the objects of a cluster and of files", flag)
		}
	}
	return nil
}

// Gates are the feature gates of the cluster or the bundle, nil if there is none.
func (s *source) Gates(ctx context.Context) (map[string]bool, error) {
	if s.bundle != "" {
		facts, err := s.Facts(ctx)
		if err != nil {
			return nil, err
		}
		return facts.Gates, nil
	}
	if !s.live() {
		return nil, nil
	}
	_, client, err := s.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gatesTimeout)
	defer cancel()
	return live.Gates(ctx, client.Discovery().RESTClient())
}

// namespace is where an object without one is: in that of the kubeconfig's context.
func (s *source) namespace() string {
	if s.live() {
		if name, _, err := s.config().Namespace(); err == nil {
			return name
		}
	}
	return metav1.NamespaceDefault
}

// config is found as kubectl does it.
func (s *source) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: s.context})
}

// connect makes the client of the cluster. It does not talk to the cluster.
func (s *source) connect() (*rest.Config, kubernetes.Interface, error) {
	config, err := s.config().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, nil, &hintedError{
			errors.New("no cluster is configured: there is no kubeconfig"),
			[]string{"set --kubeconfig or KUBECONFIG, or name files of objects with --filename"},
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = program
	config.QPS = -1 // a command asks a few times, the API server has its own limits
	// Cheaper to read than JSON, of which a large cluster has hundreds of megabytes.
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, client, nil
}
