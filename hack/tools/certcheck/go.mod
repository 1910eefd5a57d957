module certroll.dev/hack/tools/certcheck

go 1.26.0

require software.sslmate.com/src/go-pkcs12 v0.7.4

require golang.org/x/crypto v0.11.0 // indirect
