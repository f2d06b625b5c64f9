package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/tlsfiles"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// writeCertificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func writeCertificate(t *testing.T, name, certificateFile, keyFile string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, certificateFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	files.Write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// scrape asks for metrics as a client with these certificates. It returns the name in the
// certificate of the server, and the text.
func scrape(t *testing.T, url string, certificates ...tls.Certificate) (server, text string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}} // each server signs itself
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.TLS != nil {
		server = answer.TLS.PeerCertificates[0].Subject.CommonName
	}
	return server, string(body), err
}

func startMonitoring(t *testing.T, m monitoring) {
	t.Helper()
	stop, err := m.monitor((&options{}).show().metrics, func(err error) { t.Errorf("fatal: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

func TestMetricsWithoutTLS(t *testing.T) {
	address := freeAddress(t)
	startMonitoring(t, monitoring{metrics: address})
	if _, text, err := scrape(t, "http://"+address+"/metrics"); err != nil || !strings.Contains(text, "dra_numa_ready 0\n") {
		t.Errorf("%v: %.200s", err, text)
	}
	for _, path := range []string{"/", "/debug/pprof/"} {
		if _, text, err := scrape(t, "http://"+address+path); err != nil || !strings.Contains(text, "404") {
			t.Errorf("%s: %v: %.200s, want not found", path, err, text)
		}
	}
}

// Certificates are renewed while the daemon runs, and never all files at once.
func TestCertificateOfMetricsIsRenewed(t *testing.T) {
	dir := t.TempDir()
	certificate, key, clients := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	writeCertificate(t, "first", certificate, key)
	client := writeCertificate(t, "prometheus", clients, filepath.Join(dir, "client.key"))
	stranger := writeCertificate(t, "stranger", filepath.Join(dir, "other.crt"), filepath.Join(dir, "other.key"))
	address := freeAddress(t)
	startMonitoring(t, monitoring{metrics: address, certificateFile: certificate, keyFile: key, clientsCAFile: clients})
	url := "https://" + address + "/metrics"
	served := func(want string) {
		t.Helper()
		if server, text, err := scrape(t, url, client); err != nil || server != want || !strings.Contains(text, "dra_numa_ready 0\n") {
			t.Errorf("certificate of %q, %v: %.100s, want that of %q", server, err, text, want)
		}
	}
	served("first")
	if _, text, err := scrape(t, url); err == nil {
		t.Errorf("a client without a certificate has got %.100s", text)
	}
	if _, text, err := scrape(t, url, stranger); err == nil {
		t.Errorf("a client with a certificate of its own has got %.100s", text)
	}
	former := files.Read(t, key)
	writeCertificate(t, "second", certificate, key)
	renewed := files.Read(t, key)
	files.Write(t, key, former)
	served("first") // the key is not that of the certificate
	files.Write(t, key, renewed)
	served("second")
	files.Write(t, clients, files.Read(t, filepath.Join(dir, "other.crt")))
	if _, _, err := scrape(t, url, client); err == nil {
		t.Error("a client is served whose CA is not trusted any more")
	}
}

// Platforms ask for a version of TLS and for cipher suites (docs/platforms.md).
func TestMetricsTakeOnlyTheTLSOfTheFlags(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeCertificate(t, "server", certificate, key)
	const suite, other = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	for _, row := range []struct {
		policy tlsfiles.Policy
		client *tls.Config
		served bool
	}{
		{tlsfiles.Policy{}, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		{tlsfiles.Policy{}, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		{tlsfiles.Policy{MinVersion: tls.VersionTLS13}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		{tlsfiles.Policy{MinVersion: tls.VersionTLS13}, &tls.Config{}, true},
		{tlsfiles.Policy{CipherSuites: []uint16{suite}}, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}, true},
		{tlsfiles.Policy{CipherSuites: []uint16{suite}}, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{other}}, false},
	} {
		address := freeAddress(t)
		startMonitoring(t, monitoring{metrics: address, certificateFile: certificate, keyFile: key, policy: row.policy})
		row.client.InsecureSkipVerify = true
		connection, err := tls.Dial("tcp", address, row.client)
		if (err == nil) != row.served {
			t.Errorf("%+v: a client with %#x to %#x and suites %#x: %v", row.policy, row.client.MinVersion, row.client.MaxVersion, row.client.CipherSuites, err)
		}
		if err == nil {
			connection.Close()
		}
	}
}

func TestProfilesAreForTheContainerOnly(t *testing.T) {
	address := freeAddress(t)
	startMonitoring(t, monitoring{pprof: address})
	if _, text, err := scrape(t, "http://"+address+"/debug/pprof/goroutine?debug=1"); err != nil || !strings.Contains(text, "goroutine profile") {
		t.Errorf("%v: %.200s", err, text)
	}
}

func TestFlagsOfMonitoring(t *testing.T) {
	for flags, want := range map[string]string{
		"--metrics-listen=:0":                                        "",
		"--pprof=[::1]:6060":                                         "",
		"--pprof=localhost:6060":                                     "",
		"--pprof=:6060":                                              `--pprof ":6060": want an address of this container only`,
		"--pprof=10.0.0.1:6060":                                      `--pprof "10.0.0.1:6060": want an address of this container only`,
		"--metrics-listen=:0 --metrics-tls-cert=a":                   "--metrics-tls-cert and --metrics-tls-key belong together",
		"--metrics-tls-cert=a --metrics-tls-key=b":                   "--metrics-tls-cert: needs --metrics-listen",
		"--metrics-listen=:0 --metrics-tls-min-version=VersionTLS13": "--metrics-tls-min-version: needs --metrics-tls-cert and --metrics-tls-key",
		"--metrics-listen=:0 --metrics-tls-cert=a --metrics-tls-key=b --metrics-tls-cipher-suites=TLS_AES_128_GCM_SHA256": "--metrics-tls-cipher-suites: with TLS 1.2, HTTP/2 needs",
		"--metrics-listen=:0 --metrics-client-ca=a":                              "--metrics-client-ca: needs --metrics-tls-cert and --metrics-tls-key",
		"--metrics-listen=:0 --metrics-tls-cert=a --metrics-tls-key=b --pprof=x": `--pprof "x": want an address`,
	} {
		_, err := parseFlags(cli.Call{Args: append([]string{"--node-name=n"}, strings.Fields(flags)...)}, noEnv)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", flags, err, want)
		}
	}
	m := monitoring{metrics: "127.0.0.1:0", certificateFile: "/none", keyFile: "/none"}
	if _, err := m.monitor((&options{}).show().metrics, nil); err == nil || !strings.HasPrefix(err.Error(), "read TLS files of the metrics: ") {
		t.Errorf("error %v, want one of the missing file", err)
	}
}

// A keeper that hangs leaves claims without repair, so the node must not count as updated.
func TestDaemonWithoutItsKeeperIsNotReady(t *testing.T) {
	o := options{keeperDir: t.TempDir()}
	shown := o.show()
	shown.readiness.NotReady(kubeletplugin.ReasonStarting, "recovering")
	lacks := func(want string) {
		t.Helper()
		problems := shown.readiness.Problems()
		got := ""
		if last := problems[len(problems)-1]; last.Reason == kubeletplugin.ReasonKeeper {
			got = last.Text
		}
		if got != want {
			t.Errorf("the daemon lacks %q, want %q", got, want)
		}
	}
	lacks("the keeper has not looked at the cgroups of claims yet")
	beat := func(at time.Time) {
		files.Write(t, filepath.Join(o.keeperDir, keeperfile.BeatName), string(keeperfile.Beat{At: at, Releases: 9}.Encode()))
	}
	beat(time.Now())
	lacks("")
	beat(time.Now().Add(-time.Minute))
	lacks("the keeper has not looked at the cgroups of claims for 1m0s")
	address := freeAddress(t)
	stop, err := monitoring{metrics: address}.monitor(shown.metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, text, err := scrape(t, "http://"+address+"/metrics"); err != nil || !strings.Contains(text, "dra_numa_keeper_releases_total 9\n") {
		t.Errorf("%v: %.300s, want the releases of the keeper", err, text)
	}
}
