package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const validity = 30 * 24 * time.Hour // of every certificate of a rig

// authority signs every certificate of a rig.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// writeKeys makes the authority, the certificates of servers and clients, the service
// accounts' key and the kubeconfigs.
func (r *Cluster) writeKeys() error {
	ca, err := r.newAuthority()
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceAddr)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range r.Nodes {
		server.IPAddresses = append(server.IPAddresses, net.ParseIP(n.Gateway()))
	}
	if err := r.issue(ca, "apiserver", server); err != nil {
		return err
	}
	if err := r.issue(ca, "apiserver-kubelet", client("apiserver-kubelet", "system:masters")); err != nil {
		return err
	}
	for user, cert := range map[string]*x509.Certificate{
		"admin":              client("admin", "system:masters"),
		"controller-manager": client("system:kube-controller-manager"),
		"scheduler":          client("system:kube-scheduler"),
	} {
		if err := r.writeKubeconfig(ca, user, "127.0.0.1", cert); err != nil {
			return err
		}
	}
	for _, n := range r.Nodes {
		if err := r.writeKubeconfig(ca, n.Name, n.Gateway(), client("system:node:"+n.Name, "system:nodes")); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writePrivateKey(r.Path("service-account.key"), key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(r.Path("service-account.pub"), "PUBLIC KEY", public)
}

func client(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (r *Cluster) newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rig"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	return authority{cert, key}, writePEM(r.Path("ca.crt"), "CERTIFICATE", der)
}

// issue signs a certificate and writes <name>.crt and <name>.key.
func (r *Cluster) issue(ca authority, name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = ca.cert.NotBefore, ca.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	if err := writePEM(r.Path(name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writePrivateKey(r.Path(name+".key"), key)
}

// writeKubeconfig issues a client certificate and writes <user>.kubeconfig with
// everything inside.
func (r *Cluster) writeKubeconfig(ca authority, user, host string, cert *x509.Certificate) error {
	if err := r.issue(ca, user, cert); err != nil {
		return err
	}
	var files [3][]byte
	for i, name := range []string{"ca.crt", user + ".crt", user + ".key"} {
		var err error
		if files[i], err = os.ReadFile(r.Path(name)); err != nil {
			return err
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["rig"] = &clientcmdapi.Cluster{Server: r.apiServer(host), CertificateAuthorityData: files[0]}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: files[1], ClientKeyData: files[2]}
	config.Contexts["rig"] = &clientcmdapi.Context{Cluster: "rig", AuthInfo: user}
	config.CurrentContext = "rig"
	return clientcmd.WriteToFile(*config, r.Path(user+".kubeconfig"))
}

func writePrivateKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
