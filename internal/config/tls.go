package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// UsesTLS reports whether the connection is encrypted: when TLS is enabled, and whenever an API key, a certificate, an
// authority or a server name is given, which have no meaning without TLS.
func (t Temporal) UsesTLS() bool {
	s := t.TLS
	return s.Enabled || t.APIKey != "" || s.CertFile != "" || s.CertData != "" || s.CAFile != "" || s.CAData != "" ||
		s.ServerName != ""
}

// TLSConfig reads the certificates. It returns nil when the connection is not encrypted.
func (t Temporal) TLSConfig() (*tls.Config, error) {
	if !t.UsesTLS() {
		return nil, nil
	}
	out := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.TLS.ServerName,
		InsecureSkipVerify: t.TLS.InsecureSkipVerify,
	}
	cert, err := pem("temporal.tls.cert", t.TLS.CertFile, t.TLS.CertData)
	if err != nil {
		return nil, err
	}
	if cert != nil {
		key, err := pem("temporal.tls.key", t.TLS.KeyFile, t.TLS.KeyData)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("temporal.tls: read the client's certificate and key: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	authority, err := pem("temporal.tls.ca", t.TLS.CAFile, t.TLS.CAData)
	if err != nil {
		return nil, err
	}
	if authority != nil {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("temporal.tls.ca: no PEM certificate found")
		}
	}
	return out, nil
}

// pem returns a certificate or key given as a file or as text, nil for neither.
func pem(key, file, data string) ([]byte, error) {
	if file == "" {
		if data == "" {
			return nil, nil
		}
		return []byte(data), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s_file: %w", key, err)
	}
	return b, nil
}
