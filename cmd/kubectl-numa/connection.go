package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // a kubeconfig may name an auth provider
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// connection is how to reach a cluster: the kubeconfig, and the flags of kubectl that
// override parts of it.
type connection struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	flags      *pflag.FlagSet // those of the command
}

// connectionFlag is the annotation of the flags of a connection.
const connectionFlag = "connection"

// addTo adds the flags, with the names that they have in kubectl.
func (c *connection) addTo(command *cobra.Command) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{} // only some commands are about a namespace
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	for flag, usage := range map[*clientcmd.FlagInfo]string{
		&names.CurrentContext:                            "`name` of a context in the kubeconfig (default: the current context)",
		&names.ContextOverrideFlags.ClusterName:          "`name` of a cluster in the kubeconfig",
		&names.ContextOverrideFlags.AuthInfoName:         "`name` of a user in the kubeconfig",
		&names.Timeout:                                   "`time` after which a request fails, such as 30s; 0 means no limit",
		&names.AuthOverrideFlags.Impersonate:             "`user` to impersonate",
		&names.AuthOverrideFlags.ImpersonateUID:          "`UID` to impersonate",
		&names.AuthOverrideFlags.ImpersonateGroups:       "`group` to impersonate; can be repeated",
		&names.AuthOverrideFlags.Token:                   "bearer `token` for the API server",
		&names.AuthOverrideFlags.ClientCertificate:       "`file` with a client certificate",
		&names.AuthOverrideFlags.ClientKey:               "`file` with the key of the client certificate",
		&names.ClusterOverrideFlags.APIServer:            "`address` and port of the API server",
		&names.ClusterOverrideFlags.CertificateAuthority: "`file` with the certificate of the API server's authority",
		&names.ClusterOverrideFlags.TLSServerName:        "`name` that the API server's certificate must have (default: the host name in its address)",
		&names.ClusterOverrideFlags.ProxyURL:             "`URL` of a proxy",

		&names.ClusterOverrideFlags.InsecureSkipTLSVerify: "do not check the API server's certificate",
		&names.ClusterOverrideFlags.DisableCompression:    "ask for answers without compression",
	} {
		flag.Description = usage
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` with the address of the cluster and your credentials (default: as for kubectl)")
	clientcmd.BindOverrideFlags(&c.overrides, own, names)
	own.VisitAll(func(flag *pflag.Flag) { _ = own.SetAnnotation(flag.Name, connectionFlag, nil) })
	c.flags = command.Flags()
	c.flags.AddFlagSet(own)
	// These are for completion in shells. The flags exist, so there are no errors.
	for _, name := range []string{"kubeconfig", clientcmd.FlagCAFile, clientcmd.FlagCertFile, clientcmd.FlagKeyFile} {
		_ = command.MarkFlagFilename(name)
	}
	complete(command, clientcmd.FlagContext, c.names(func(config clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(config.Contexts)) }))
	complete(command, clientcmd.FlagClusterName, c.names(func(config clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(config.Clusters)) }))
	complete(command, clientcmd.FlagAuthInfoName, c.names(func(config clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(config.AuthInfos)) }))
}

// names completes names of the kubeconfig. If it cannot be read, there are none.
func (c *connection) names(of func(clientcmdapi.Config) []string) func(*cobra.Command) []string {
	return func(*cobra.Command) []string {
		config, err := c.config().RawConfig()
		if err != nil {
			return nil
		}
		return of(config)
	}
}

// config finds the kubeconfig as kubectl does.
func (c *connection) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// check returns an error for a value that makes no sense, whether or not a cluster is
// read.
func (c *connection) check() error {
	timeout := c.overrides.Timeout
	if timeout == "" {
		return nil
	}
	if parsed, err := clientcmd.ParseTimeout(timeout); err != nil || parsed < 0 {
		return fmt.Errorf("--%s %q: want a time of 0 or more, such as 30s or 2m", clientcmd.FlagTimeout, timeout)
	}
	return nil
}

// given returns the name of a flag that the user has set, or "".
func (c *connection) given() (name string) {
	if c.flags == nil {
		return ""
	}
	c.flags.Visit(func(flag *pflag.Flag) {
		if isConnection(flag) && name == "" {
			name = flag.Name
		}
	})
	return name
}

func isConnection(flag *pflag.Flag) bool {
	_, is := flag.Annotations[connectionFlag]
	return is
}
