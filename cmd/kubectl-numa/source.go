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
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot/live"
)

// gatesTimeout is the limit for reading the metrics of an API server, which have
// megabytes.
const gatesTimeout = 10 * time.Second

// source is where a command reads objects from: the cluster that kubectl talks to, a
// bundle that gather wrote, or files. Objects from files can also replace objects of
// the cluster or the bundle.
type source struct {
	files       files
	takesFiles  bool // the command has --filename
	fromCluster bool
	bundle      string // path of the file
	connection  connection
	driver      string // namespace of the driver; empty if the cluster says it
	scope       scope  // which objects the command lists
	visible     string // the namespace that the command is about, if it needs to see no more; otherwise empty
	keepTexts   bool   // of pods and workloads of files

	read *diagnosis.Facts // the facts of the bundle, once they are read
}

// addTo adds the flags for a command that reads objects.
func (s *source) addTo(command *cobra.Command) {
	s.takesFiles = true
	s.files.addTo(command, "`file`, folder or URL with objects of a cluster; - is standard input; can be repeated (default: the cluster that kubectl talks to)")
	command.Flags().BoolVar(&s.fromCluster, "from-cluster", false, "read the cluster as well as --filename; objects of the files replace objects of the cluster with the same name")
	s.addDiagnosisTo(command)
}

// addDiagnosisTo adds the flags for a command that needs more than objects. Such a
// command reads a cluster or a bundle.
func (s *source) addDiagnosisTo(command *cobra.Command) {
	command.Flags().StringVar(&s.bundle, "from", "", "`bundle` that gather wrote, to read instead of a cluster")
	s.addClusterTo(command)
	_ = command.MarkFlagFilename("from", "tar.gz") // for completion in shells; the flag exists
}

// addDriverTo adds the flag for a command that believes the driver's pods.
func (s *source) addDriverTo(command *cobra.Command) {
	command.Flags().StringVar(&s.driver, "driver-namespace", "", "`name` of the driver's namespace, if you may not list ClusterRoleBindings (default: that of the chart's ClusterRoleBinding)")
}

// addClusterTo adds the flags that name a cluster.
func (s *source) addClusterTo(command *cobra.Command) { s.connection.addTo(command) }

// insteadOfCluster says what to do if no cluster is configured.
func (s *source) insteadOfCluster() string {
	const hint = "set --kubeconfig or KUBECONFIG"
	if s.takesFiles {
		return hint + ", or name files with objects in --filename"
	}
	return hint
}

// String names the places in which objects are looked up, for an error.
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

// live reports whether the command reads the cluster.
func (s *source) live() bool { return s.fromCluster || len(s.files) == 0 && s.bundle == "" }

// Snapshot reads the objects.
func (s *source) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	// Read the files first: a wrong name is found before the cluster is read.
	named, err := s.files.read(ctx, &snapshot.Snapshot{Namespace: s.namespace(), KeepTexts: s.keepTexts})
	if err != nil || !s.live() && s.bundle == "" {
		return named, err
	}
	objects, err := s.base(ctx)
	if err != nil {
		return nil, err
	}
	objects.Overlay(named)
	return objects, nil
}

// forCompletion reads the objects while a shell completes a command line. cobra then
// parses the flags twice, so each file is named twice.
func (s *source) forCompletion(ctx context.Context) (*snapshot.Snapshot, error) {
	var once files
	for _, name := range s.files {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	s.files = once
	return s.Snapshot(ctx)
}

// completion lets shells complete arguments with the names that the objects have. If the
// objects cannot be read, there are no names to complete.
func (s *source) completion(names func(objects *snapshot.Snapshot, args []string) []string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		objects, err := s.forCompletion(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(objects, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNode lets shells complete the argument of withNode.
func (s *source) completeNode(names func(objects *snapshot.Snapshot) []string) cobra.CompletionFunc {
	return s.completion(func(objects *snapshot.Snapshot, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return names(objects)
	})
}

// base reads the objects of the cluster or the bundle, which objects from files can
// replace.
func (s *source) base(ctx context.Context) (*snapshot.Snapshot, error) {
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
	read := live.Source{Client: client}.Snapshot
	if s.visible != "" {
		read = func(ctx context.Context) (*snapshot.Snapshot, error) {
			return live.Source{Client: client}.Visible(ctx, s.visible)
		}
	}
	objects, err := read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return objects, nil
}

// Facts reads everything that a diagnosis needs.
func (s *source) Facts(ctx context.Context) (*diagnosis.Facts, error) {
	if err := s.check(); err != nil || s.read != nil {
		return s.read, err
	}
	if s.bundle != "" {
		bundle, err := readBundle(s.bundle)
		if s.read = bundle.Facts; err == nil {
			s.read.Objects.Events = bundle.Events
		}
		return s.read, err
	}
	return s.collect(ctx, collect.Facts)
}

// Versions reads what [diagnosis.VersionsOf] needs.
func (s *source) Versions(ctx context.Context) (*diagnosis.Facts, error) {
	if s.bundle != "" {
		return s.Facts(ctx)
	}
	return s.collect(ctx, collect.Versions)
}

// collect reads facts from the cluster, of the driver in its namespace.
func (s *source) collect(ctx context.Context, read func(context.Context, kubernetes.Interface, string) (*diagnosis.Facts, error)) (*diagnosis.Facts, error) {
	_, client, err := s.connect()
	if err != nil {
		return nil, err
	}
	facts, err := read(ctx, client, s.driver)
	if err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	return facts, nil
}

func (s *source) check() error {
	if s.bundle != "" && s.fromCluster {
		return errors.New("--from reads a bundle, and --from-cluster reads a cluster: set only one of them")
	}
	if err := s.connection.check(); err != nil || s.live() {
		return err
	}
	name := s.connection.given()
	if name == "" && s.driver != "" {
		name = "driver-namespace"
	}
	if name != "" {
		return fmt.Errorf("--%s is for a cluster, but no cluster is read: set --from-cluster to read the cluster as well", name)
	}
	return nil
}

// Rules returns the rules of the scheduler of a version of Kubernetes, which was checked. ""
// means that of the cluster or the bundle, and for files the default. The feature gates are
// those of the cluster or the bundle. If they cannot be read, the error says why, and the rules
// have the default gates.
func (s *source) Rules(ctx context.Context, version string) (simulate.Rules, error) {
	known, gates, err := s.reported(ctx)
	if version == "" {
		version = known
	}
	rules, parseErr := simulate.RulesOf(version)
	if parseErr != nil { // files, or what an API server says that is not ours to judge
		rules = simulate.DefaultRules()
	}
	return rules.Observed(gates), err
}

// reported returns version and feature gates as the API server reports them. Files have
// none.
func (s *source) reported(ctx context.Context) (version string, gates map[string]bool, err error) {
	if s.bundle != "" {
		facts, err := s.Facts(ctx)
		if err != nil {
			return "", nil, err
		}
		return facts.Version, facts.Gates, nil
	}
	if !s.live() {
		return "", nil, nil
	}
	_, client, err := s.connect()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, gatesTimeout)
	defer cancel()
	if answer, err := client.Discovery().ServerVersionWithContext(ctx); err == nil {
		version = answer.GitVersion
	}
	gates, err = live.Gates(ctx, client.Discovery().RESTClient())
	return version, gates, err
}

// namespace returns the namespace of an object if nothing else names one: that of
// --namespace, or that of the kubeconfig's context.
func (s *source) namespace() string {
	if s.scope.namespace != "" {
		return s.scope.namespace
	}
	if s.live() {
		if name, _, err := s.connection.config().Namespace(); err == nil {
			return name
		}
	}
	return metav1.NamespaceDefault
}

// connect returns a client for the cluster. It does not talk to the cluster.
func (s *source) connect() (*rest.Config, kubernetes.Interface, error) {
	if err := s.connection.check(); err != nil {
		return nil, nil, err
	}
	config, err := s.connection.config().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, nil, &hintedError{
			errors.New("no cluster is configured: there is no kubeconfig"),
			[]string{s.insteadOfCluster()},
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = program
	config.QPS = -1 // no limit: a command sends few requests, and the API server has its own limits
	// Decoding Protobuf is cheaper than JSON. The objects of a large cluster have
	// hundreds of megabytes.
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, client, nil
}
