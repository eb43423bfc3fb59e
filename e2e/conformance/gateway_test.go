// Package conformance compiles the official Gateway API suite into one test binary; ./run builds and runs it.
package conformance

import (
	"encoding/json"
	"os"
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// TestConformance reads its settings from command-line flags: profiles, GatewayClass, report.
func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}

// TestList writes the features that each test of the suite needs, as JSON, to the file CONFORMANCE_LIST.
func TestList(t *testing.T) {
	path := os.Getenv("CONFORMANCE_LIST")
	if path == "" {
		t.Skip("CONFORMANCE_LIST is not set")
	}
	needs := map[string][]features.FeatureName{}
	for _, test := range tests.ConformanceTests {
		needs[test.ShortName] = test.Features
	}
	content, err := json.Marshal(needs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
