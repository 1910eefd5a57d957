module certroll.dev/hack/tools/bettertls

go 1.26.0

tool github.com/Netflix/bettertls/test-suites/cmd/bettertls

require (
	github.com/Netflix/bettertls v0.0.0-20250909192348-e1e99e353074 // indirect
	github.com/golang/protobuf v1.5.2 // indirect
	github.com/google/uuid v1.3.0 // indirect
	github.com/mattn/go-runewidth v0.0.13 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.2.0 // indirect
	github.com/schollz/progressbar/v3 v3.8.3 // indirect
	github.com/sirupsen/logrus v1.8.1 // indirect
	golang.org/x/crypto v0.35.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
	golang.org/x/term v0.29.0 // indirect
	google.golang.org/protobuf v1.33.0 // indirect
)
