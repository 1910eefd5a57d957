package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const callTimeout = 60 * time.Second

// connect calls a server over a handshake of its own each time, with certificate, key and CAs read from /certs for each, until it
// is asked to end: hack/images/rereading-client in Go, with the same lines.
func connect(args []string) (string, error) {
	if len(args) != 4 {
		return "", errors.New("usage: certcheck connect HOST PORT SERVERNAME MILLISECONDS")
	}
	every, err := strconv.Atoi(args[3])
	if err != nil {
		return "", err
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, os.Interrupt)
	ticks := time.NewTicker(time.Duration(every) * time.Millisecond)
	for number := 0; ; number++ {
		record(number, "https://"+args[0]+":"+args[1]+"/", args[2])
		select {
		case <-ends:
			fmt.Printf("{\"ended\": %d}\n", number+1)
			os.Exit(0)
		case <-ticks.C:
		}
	}
}

func record(number int, url, name string) {
	began := time.Now()
	err := callAgain(url, name)
	line := map[string]any{
		"t": float64(began.UnixMicro()) / 1e6, "target": "go", "n": number, "ok": err == nil, "ms": float64(time.Since(began).Microseconds()) / 1e3,
	}
	if err != nil {
		line["reason"] = err.Error()
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

// callAgain reads files that went while they were read again: of the version that is there now.
func callAgain(url, name string) error {
	for tries := 0; ; tries++ {
		// All of one version: a kubelet puts a new folder in the place of the one before (atomic_writer.go).
		folder, err := filepath.EvalSymlinks("/certs/..data")
		if err != nil {
			folder = "/certs"
		}
		err = call(folder, url, name)
		if _, gone := os.Stat(filepath.Join(folder, "ca.crt")); err == nil || gone == nil || tries == 2 {
			return err
		}
	}
}

func call(folder, url, name string) error {
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return err
	}
	trusted, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(trusted) {
		return errors.New("no certificate in ca.crt")
	}
	client := http.Client{Timeout: callTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: name, Certificates: []tls.Certificate{own}},
	}}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Host = name
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(response.Status))
	}
	return nil
}
