// Package tlsfiles reads the files of a server that uses TLS, again when they have changed:
// certificates are renewed while the server runs.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Files are the names of the files. Several goroutines can use them at the same time.
type Files struct {
	Certificate, Key string
	// ClientsCA is of the certificates that clients must have; "" if they need none.
	ClientsCA string
	// Policy is what is accepted from clients.
	Policy Policy

	mu     sync.Mutex
	read   []fs.FileInfo // as they were when config was made
	config *tls.Config
}

// Current returns the configuration of the files as they are now. While one of them cannot
// be read, or they do not belong together, it returns the last one that was whole. It is an
// error if there has been none yet.
func (f *Files) Current() (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.stat()
	if err == nil && f.config != nil && sameFiles(f.read, now) {
		return f.config, nil
	}
	var config *tls.Config
	if err == nil {
		config, err = f.load()
	}
	switch {
	case err == nil:
		f.config, f.read = config, now
	case f.config == nil:
		return nil, err
	}
	return f.config, nil
}

func (f *Files) load() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: f.Policy.MinVersion, CipherSuites: f.Policy.CipherSuites,
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"},
	}
	if f.ClientsCA == "" {
		return config, nil
	}
	text, err := os.ReadFile(f.ClientsCA)
	if err != nil {
		return nil, err
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", f.ClientsCA)
	}
	return config, nil
}

// stat follows links: kubelets replace the files of a volume by changing one.
func (f *Files) stat() (infos []fs.FileInfo, err error) {
	for _, name := range []string{f.Certificate, f.Key, f.ClientsCA} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func sameFiles(a, b []fs.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}
