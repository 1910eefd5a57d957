package main

import (
	"bufio"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

var firstDay = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// clients answers lines of the standard input until it ends, as test/integration/bundle/bundle_driver.c does: "reset",
// "cert NAME BASE64", "verify go DAY ROOTS CHAIN" with 1 or 0, and "flush". "go-reads" is a client that verifies what
// Go can read.
func clients(_ []string) (string, error) {
	known := map[string]*x509.Certificate{}
	lines := bufio.NewScanner(os.Stdin)
	answers := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 1 && words[0] == "reset":
			clear(known)
		case len(words) == 1 && words[0] == "flush":
			if err := answers.Flush(); err != nil {
				return "", err
			}
		case len(words) == 3 && words[0] == "cert":
			der, err := base64.StdEncoding.DecodeString(words[2])
			if err != nil {
				return "", fmt.Errorf("%s: %w", words[1], err)
			}
			// Nil: Go cannot read it.
			known[words[1]], _ = x509.ParseCertificate(der)
		case len(words) == 5 && words[0] == "verify":
			answer, err := verifies(known, words[1], words[2], words[3], words[4])
			if err != nil {
				return "", err
			}
			fmt.Fprintln(answers, answer)
		default:
			return "", errors.New("what is " + lines.Text())
		}
	}
	return "", lines.Err()
}

func verifies(known map[string]*x509.Certificate, client, day, roots, chain string) (int, error) {
	var days int
	if _, err := fmt.Sscan(day, &days); err != nil {
		return 0, err
	}
	served := named(known, chain)
	// A handshake fails at what was sent and cannot be read; in a bundle it is passed over.
	if reads(known, chain) == 0 {
		return 0, nil
	}
	if client == "go-reads" {
		return reads(known, roots), nil
	}
	_, err := served[0].Verify(x509.VerifyOptions{
		Roots: pool(named(known, roots)), Intermediates: pool(served[1:]), CurrentTime: firstDay.AddDate(0, 0, days),
		KeyUsages: []x509.ExtKeyUsage{usageOf(served[0])},
	})
	if err != nil {
		return 0, nil
	}
	return 1, nil
}

// reads says whether Go can read all of "A,B,C".
func reads(known map[string]*x509.Certificate, names string) int {
	if names != "-" && len(named(known, names)) < strings.Count(names, ",")+1 {
		return 0
	}
	return 1
}

// usageOf is that of a server, unless the leaf can only be a client's.
func usageOf(leaf *x509.Certificate) x509.ExtKeyUsage {
	server := slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	if !server && slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return x509.ExtKeyUsageClientAuth
	}
	return x509.ExtKeyUsageServerAuth
}

// named returns the certificates of "A,B,C", none for "-".
func named(known map[string]*x509.Certificate, names string) []*x509.Certificate {
	var certificates []*x509.Certificate
	for _, name := range strings.Split(names, ",") {
		if certificate := known[name]; certificate != nil {
			certificates = append(certificates, certificate)
		}
	}
	return certificates
}
