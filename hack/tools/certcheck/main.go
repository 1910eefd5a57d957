// certcheck says what Go makes of certificates and PKCS#12 files: crypto/x509, which Kubernetes and much else verifies
// with, and the library that cert-manager writes keystores with. The answer is "ok …" or what is wrong, with status 1.
//
//	certcheck verify -roots FILE -chain FILE -usage server|client [-names NAME,…]
//	certcheck keystore FILE PASSWORD
//	certcheck truststore FILE PASSWORD
//	certcheck clients
//	certcheck connect HOST PORT SERVERNAME MILLISECONDS
package main

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"software.sslmate.com/src/go-pkcs12"
)

func main() {
	commands := map[string]func([]string) (string, error){
		"verify": verify, "keystore": keystore, "truststore": truststore, "clients": clients, "connect": connect,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: certcheck verify|keystore|truststore …")
		os.Exit(2)
	}
	answer, err := commands[os.Args[1]](os.Args[2:])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok", answer)
}

func verify(args []string) (string, error) {
	flags := flag.NewFlagSet("verify", flag.ExitOnError)
	roots := flags.String("roots", "", "trusted certificates")
	chain := flags.String("chain", "", "the leaf and what is served with it")
	usage := flags.String("usage", "server", "server or client")
	names := flags.String("names", "", "DNS names, and IP addresses in brackets, that it must be for")
	_ = flags.Parse(args)
	trusted, err := read(*roots)
	if err != nil {
		return "", err
	}
	served, err := read(*chain)
	if err != nil {
		return "", err
	}
	options := x509.VerifyOptions{
		Roots: pool(trusted), Intermediates: pool(served[1:]),
		KeyUsages: []x509.ExtKeyUsage{map[string]x509.ExtKeyUsage{
			"server": x509.ExtKeyUsageServerAuth, "client": x509.ExtKeyUsageClientAuth,
		}[*usage]},
	}
	for _, name := range strings.Split(*names, ",") {
		options.DNSName = name
		if _, err := served[0].Verify(options); err != nil {
			return "", err
		}
	}
	return *usage, nil
}

func read(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, fmt.Errorf("%s: no certificate", file)
	}
	return certificates, nil
}

func pool(certificates []*x509.Certificate) *x509.CertPool {
	made := x509.NewCertPool()
	for _, certificate := range certificates {
		made.AddCert(certificate)
	}
	return made
}

func keystore(args []string) (string, error) {
	file, err := os.ReadFile(args[0])
	if err != nil {
		return "", err
	}
	key, leaf, others, err := pkcs12.DecodeChain(file, args[1])
	if err != nil {
		return "", err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return "", errors.New("the key cannot sign")
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return "", err
	}
	if !bytes.Equal(public, leaf.RawSubjectPublicKeyInfo) {
		return "", errors.New("the key is not the certificate's")
	}
	return fmt.Sprintf("%s and %d other(s)", leaf.DNSNames[0], len(others)), nil
}

func truststore(args []string) (string, error) {
	file, err := os.ReadFile(args[0])
	if err != nil {
		return "", err
	}
	trusted, err := pkcs12.DecodeTrustStore(file, args[1])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d trusted", len(trusted)), nil
}
