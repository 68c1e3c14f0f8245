package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	encoding "encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate makes a self-signed certificate and its key, in PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "precis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(encoding.EncodeToMemory(&encoding.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8)
}

func TestTLSIsOnWhenAskedOrImplied(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		temporal Temporal
		want     bool
	}{
		"nothing":     {Temporal{Address: "h:1"}, false},
		"asked":       {Temporal{TLS: TLS{Enabled: true}}, true},
		"API key":     {Temporal{APIKey: "k"}, true},
		"server name": {Temporal{TLS: TLS{ServerName: "h"}}, true},
	} {
		got, err := tt.temporal.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		if (got != nil) != tt.want {
			t.Errorf("%s: TLS %v, want %v", name, got != nil, tt.want)
		}
	}
}

func TestTLSReadsCertificatesFromFilesAndText(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	write(t, certFile, cert)
	write(t, keyFile, key)
	for name, s := range map[string]TLS{
		"files": {CertFile: certFile, KeyFile: keyFile, CAFile: certFile, ServerName: "temporal"},
		"text":  {CertData: cert, KeyData: key, CAData: cert, ServerName: "temporal"},
	} {
		got, err := Temporal{TLS: s}.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Certificates) != 1 || got.RootCAs == nil || got.ServerName != "temporal" || got.InsecureSkipVerify {
			t.Errorf("%s: certificates %d, authority %v, name %q", name, len(got.Certificates), got.RootCAs != nil,
				got.ServerName)
		}
	}
	for want, s := range map[string]TLS{
		"temporal.tls.cert_file":                    {CertFile: filepath.Join(dir, "none"), KeyFile: keyFile},
		"temporal.tls.ca: no PEM certificate found": {CAData: "nothing"},
		"the client's certificate and key":          {CertData: cert, KeyData: cert},
	} {
		if _, err := (Temporal{TLS: s}).TLSConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %q", err, want)
		}
	}
}
